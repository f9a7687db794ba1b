"""Sessions: `nox` runs lint, types and the tests against the oldest, a middle and the newest torch; `nox -s wheel`."""

import shutil
from pathlib import Path

import nox

ROOT = Path(__file__).parent
TORCH = ("2.6", "2.9", "newest")

nox.options.sessions = ["lint", "types", "tests"]
nox.options.reuse_existing_virtualenvs = True


@nox.session
def lint(session: nox.Session) -> None:
    session.install("ruff>=0.9")
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")


@nox.session
def types(session: nox.Session) -> None:
    session.install("-e", ".[dev]")
    session.run("mypy")


@nox.session
@nox.parametrize("torch", TORCH)
def tests(session: nox.Session, torch: str) -> None:
    pin = () if torch == "newest" else (f"torch=={torch}.*",)
    session.install("-e", ".[test]", *pin)
    session.run("pytest", "-n", "auto", *session.posargs, env={"OMP_NUM_THREADS": "1"})


@nox.session
def wheel(session: nox.Session) -> None:
    """Builds sdist, then the wheel from it; runs the tests on the wheel, where the checkout cannot be imported."""
    session.install("build", "twine")
    dist = ROOT / "dist"
    shutil.rmtree(dist, ignore_errors=True)
    session.run("python", "-m", "build", "--outdir", str(dist))
    session.run("twine", "check", "--strict", *map(str, dist.iterdir()))
    (built,) = dist.glob("*.whl")
    session.install(f"{built}[test]")
    session.chdir(session.create_tmp())
    session.run("pytest", "-n", "auto", str(ROOT / "tests"), env={"OMP_NUM_THREADS": "1"})
