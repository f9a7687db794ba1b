"""Sessions: `nox` runs lint, types and the tests against the oldest, a middle and the newest torch.

`nox -s docs` builds the site, `wheel` tests the wheel, `engines` runs the pages' code in the engines that pip has,
`needed` lists entries that a torch has made superfluous, and `matrix` tries each Python with each torch.
"""

import datetime
import re
import shutil
from pathlib import Path

import nox

ROOT = Path(__file__).parent
TORCH = ("2.6", "2.9", "newest")
PYTHON = ("3.10", "3.11", "3.12", "3.13", "3.14")
VERSIONS = ROOT / "benchmarks" / "results" / "versions.md"
SELECTION = (
    "tests/test_arguments.py",
    "tests/catalogue/test_registry.py",
    "tests/test_errors.py",
    "tests/publish/test_publish.py",
)
"""What `matrix` runs unless it is told: the keywords, the registry, the errors, the file's way to its place."""

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


@nox.session
def docs(session: nox.Session) -> None:
    """Builds the site; a dead link or anchor is an error."""
    session.install("mkdocs-material>=9.5", "mkdocstrings[python]>=0.27")
    session.run("mkdocs", "build", *session.posargs, env={"NO_MKDOCS_2_WARNING": "1"})


@nox.session
def engines(session: nox.Session) -> None:
    """Runs the code of the pages and of reports in the engines that pip installs beside torch."""
    session.install("-e", ".[test,zoo,openvino,opencv,tract,mnn,tvm]", "ncnn")
    session.install("--no-deps", "pnnx")
    pages = ("tests/test_docs.py", "tests/report", "tests/zoo/test_optional.py")
    session.run("pytest", *pages, *session.posargs, env={"OMP_NUM_THREADS": "1"})


@nox.session
@nox.parametrize("torch", ("newest", "nightly"))
def needed(session: nox.Session, torch: str) -> None:
    """Lists the entries that a torch has made superfluous; for a weekly run."""
    session.install("-e", ".[test]")
    if torch == "nightly":
        url = "https://download.pytorch.org/whl/nightly/cpu"
        session.install("--pre", "--upgrade", "--index-url", url, "torch", "torchvision")
    session.run("python", "scripts/still_needed.py", *session.posargs, env={"OMP_NUM_THREADS": "1"})


@nox.session(python=PYTHON)
@nox.parametrize("torch", TORCH)
def matrix(session: nox.Session, torch: str) -> None:
    """Runs a selection of the tests, and notes what came out in a table."""
    pin = () if torch == "newest" else (f"torch=={torch}.*",)
    session.install("-e", ".[test]", *pin)
    ask = "import platform, torch; print(platform.python_version(), torch.__version__)"
    python, version = str(session.run("python", "-c", ask, silent=True)).split()
    tests = session.posargs or SELECTION
    said = session.run("pytest", "-q", *tests, silent=True, success_codes=[0, 1], env={"OMP_NUM_THREADS": "1"}) or ""
    outcome = _outcome(str(said))
    _note_version(python, version, outcome)
    if "passed" not in outcome or "failed" in outcome:
        session.error(str(said))


def _outcome(said: str) -> str:
    """What pytest counted, and which tests failed."""
    summary = re.findall(r"^(\d+ (?:passed|failed|skipped|error).*?) in [\d.]+s", said, re.MULTILINE)
    failed = re.findall(r"^(?:FAILED|ERROR) \S+::(\S+)", said, re.MULTILINE)
    return "; ".join([*summary[-1:], *failed]) or "no result"


def _note_version(python: str, torch: str, counts: str) -> None:
    """Writes one line of the table; an older one of the same versions goes, and what stands below the table stays."""
    head = [
        "# Versions",
        "",
        f"Written by `nox -s matrix`; tests: {', '.join(SELECTION)}.",
        "",
        "| Python | torch | tests | date |",
        "| --- | --- | --- | --- |",
    ]
    before, heading, below = (VERSIONS.read_text(encoding="utf-8") if VERSIONS.exists() else "").partition("\n## ")
    told = before.splitlines()
    start = f"| {python} | {torch} |"
    rows = [line for line in told if line.startswith("| 3.") and not line.startswith(start)]
    rows.append(f"{start} {counts} | {datetime.date.today()} |")
    VERSIONS.write_text("\n".join([*head, *sorted(rows), ""]) + heading + below, encoding="utf-8")
