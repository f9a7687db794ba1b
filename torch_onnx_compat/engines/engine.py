"""The engines that have an adapter, and the interpreters that run them."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from torch_onnx_compat.errors import ArgumentError, CompatError, unknown_name
from torch_onnx_compat.targets import Target, known_targets

HOME_VARIABLE = "TORCH_ONNX_COMPAT_ENGINES"
"""Environment variable: the directory of the engines' virtual environments."""

_SEEN: set[tuple[str, str]] = set()
"""Modules of engines with the interpreters that were seen to have them: to ask one takes a process."""


@dataclass(frozen=True)
class Engine:
    """An engine that can be run here.

    Args:
        name: The target's name.
        module: Module that an interpreter has if it has the engine; for npm's a directory of the environment.
        packages: Packages that pip installs for it.
        alone: Packages that pip installs without their dependencies.
        npm: Packages that npm installs for it; its adapter runs in Python and starts node.
        adapter: Name of the adapter's file in this directory; by default the engine's name.
        variant: Passed to the adapter.
        tolerance: Relative and absolute difference from onnxruntime that rounding explains.
        computes_in: Element type that it computes floating-point numbers in.
        opset: The opset to export at unless the caller asks for one.
        environment: Name of its virtual environment, which engines of one package share.
        turns_images: Whether it moves images' channels to the end; probes are then tried behind a convolution too.
        builds: Whether it only parses and builds files here; what it parsed is computed instead of run.
        sets_threads: Whether its adapter sets the number of threads.
    """

    name: str
    module: str
    packages: tuple[str, ...]
    alone: tuple[str, ...] = ()
    npm: tuple[str, ...] = ()
    adapter: str = ""
    variant: str = ""
    tolerance: tuple[float, float] = (1e-3, 5e-4)
    computes_in: str = "float32"
    opset: int = 17
    environment: str = ""
    turns_images: bool = False
    builds: bool = False
    sets_threads: bool = False

    @property
    def path(self) -> Path:
        """The adapter's file."""
        return Path(__file__).parent / f"{self.adapter or self.name}.py"

    @property
    def home(self) -> Path:
        """Its virtual environment, made by `install`."""
        root = os.environ.get(HOME_VARIABLE) or Path.home() / ".cache" / "torch-onnx-compat" / "engines"
        return Path(root) / (self.environment or self.name)

    @property
    def variable(self) -> str:
        """Environment variable that names another interpreter."""
        return f"TORCH_ONNX_COMPAT_{self.name.upper().replace('-', '_')}_PYTHON"

    def interpreter(self) -> str | None:
        """The interpreter that has the engine: the variable's, the environment's, or this one; None if none has it."""
        given = os.environ.get(self.variable)
        own = self.home / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
        candidates = [given] if given else [*([str(own)] if own.exists() else []), sys.executable]
        return next((c for c in candidates if self._is_in(c)), None)

    def _is_in(self, interpreter: str) -> bool:
        if (self.module, interpreter) in _SEEN:
            return True
        code = f"import importlib.util, sys; sys.exit(not importlib.util.find_spec({self.module!r}))"
        if self.npm:
            code = f"import os, sys; sys.exit(not os.path.exists(os.path.join(sys.prefix, {self.module!r})))"
        try:
            found = subprocess.run([interpreter, "-c", code], capture_output=True, timeout=60).returncode == 0
        except (OSError, subprocess.TimeoutExpired):
            return False
        if found:
            _SEEN.add((self.module, interpreter))
        return found

    def install(self) -> Path:
        """Makes its virtual environment.

        Raises:
            CompatError: pip or npm cannot install it.
        """
        subprocess.run([sys.executable, "-m", "venv", str(self.home)], check=True)
        python = self.home / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
        pip = [str(python), "-m", "pip", "install", "-q"]
        self._run_installer([*pip, "numpy"], self.packages)
        if self.alone:
            self._run_installer([*pip, "--no-deps"], self.alone)
        if self.npm:
            self._run_installer(["npm", "install", "--silent", "--prefix", str(self.home)], self.npm)
        return self.home

    def _run_installer(self, command: list[str], packages: tuple[str, ...]) -> None:
        """Runs pip or npm."""
        try:
            failed = subprocess.run([*command, *packages]).returncode
        except FileNotFoundError:
            failed = 1
        if failed:
            wanted = ", ".join(packages or ("numpy",))
            raise CompatError(f"engine {self.name!r}: `{' '.join(command)}` could not install {wanted}; see above.")


_OPENCV = ("opencv-python-headless>=5",)
_WEB = "node_modules/onnxruntime-web"
_BESIDE_RKNN = (
    "onnx==1.18",
    "onnxruntime==1.23.2",
    "numpy<2",
    "protobuf==4.25.4",
    "scipy",
    "psutil",
    "tqdm",
    "ruamel.yaml",
    "fast-histogram",
    "opencv-python-headless<4.12",
)
"""Dependencies of rknn-toolkit2 without torch, which its adapter replaces."""

ENGINES: dict[str, Engine] = {
    engine.name: engine
    for engine in (
        Engine("onnxruntime", "onnxruntime", ("onnxruntime",), opset=20, sets_threads=True),
        Engine("openvino", "openvino", ("openvino",), opset=18, sets_threads=True),
        Engine("opencv", "cv2", _OPENCV, sets_threads=True),
        Engine(
            "opencv-classic",
            "cv2",
            _OPENCV,
            adapter="opencv",
            variant="classic",
            environment="opencv",
            sets_threads=True,
        ),
        Engine("tract", "tract", ("tract",)),
        Engine("mnn", "MNN", ("MNN",)),
        Engine(
            "ncnn", "ncnn", (), alone=("ncnn", "pnnx"), sets_threads=True
        ),  # pnnx asks for torch, and runs without it
        Engine("tinygrad", "tinygrad", ("tinygrad", "ziglang")),
        Engine("onnxruntime-web", _WEB, (), npm=("onnxruntime-web",), adapter="onnxruntime_web", opset=20),
        Engine(
            "rknn",
            "rknn",
            _BESIDE_RKNN,
            alone=("rknn-toolkit2==2.5.0",),
            tolerance=(2e-2, 1e-2),
            computes_in="float16",
        ),
        Engine("tensorrt-rtx", "tensorrt_rtx", ("tensorrt-rtx",), adapter="tensorrt_rtx", opset=20, builds=True),
        Engine("tvm", "tvm", ("apache-tvm", "onnx")),
        # onnx2tf pins TensorFlow and the interpreter; its later versions are different programs.
        Engine("tflite", "onnx2tf", ("onnx2tf==1.29.24",), turns_images=True),
    )
}


def find_engine(name: str) -> Engine:
    """An engine by name.

    Raises:
        CompatError: No adapter has that name.
    """
    if name in known_targets() and name not in ENGINES:
        raise _no_adapter(name)
    if name not in ENGINES:
        raise unknown_name("engine", name, ENGINES)
    return ENGINES[name]


def find_installed(target: Target) -> Engine:
    """A target's engine, which runs files here.

    Raises:
        ArgumentError: There is no adapter for it, or it is not installed.
    """
    if target.name not in ENGINES:
        raise _no_adapter(target.name)
    engine = ENGINES[target.name]
    if engine.interpreter() is None:
        raise ArgumentError(
            f"{target.name} is not installed here; `torch-onnx-compat measure {target.name} --install` installs it."
        )
    return engine


def _no_adapter(name: str) -> ArgumentError:
    return ArgumentError(f"{name} cannot be run here: there is no adapter for it. There are: {', '.join(ENGINES)}.")
