"""The rules of the house: what imports what, what is packaged, how long a file may be."""

from __future__ import annotations

import ast
import importlib
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = {
    "hideaway": "hideaway",
    "hideaway.sim": "sim",
    "hideaway.calibrate": "calibrate",
    "hideaway.hw": "hw",
}
MAX_LINES = 300


def project_files() -> list[Path]:
    folders = [ROOT / folder for folder in (*FOLDERS.values(), "tools", "benchmarks")]
    return sorted(path for folder in folders if folder.exists() for path in folder.rglob("*.py"))


def module_of(path: Path) -> str:
    relative = path.relative_to(ROOT)
    head = relative.parts[0]
    package = next((name for name, folder in FOLDERS.items() if folder == head), head)
    tail = [part for part in relative.with_suffix("").parts[1:] if part != "__init__"]
    return ".".join([package, *tail])


def imports_of(path: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} imports relatively"
            names.add(node.module or "")
    return names


def uses(names: set[str], package: str) -> bool:
    return any(name == package or name.startswith(package + ".") for name in names)


def test_imports_go_one_way() -> None:
    for path in project_files():
        module, names = module_of(path), imports_of(path)
        inner = {name for name in names if name.startswith("hideaway")}
        if module.startswith("hideaway.sim"):
            assert all(uses({name}, "hideaway.sim") for name in inner), (
                f"{path} reaches outside the pure core"
            )
        if module.startswith("hideaway.calibrate") or module.startswith("hideaway.hw"):
            own = module.split(".")[1]
            allowed = ("hideaway.sim", f"hideaway.{own}")
            assert all(any(uses({name}, home) for home in allowed) for name in inner), f"{path} reaches up"


@pytest.mark.parametrize(
    ("package", "homes"),
    [
        ("simpy", ("hideaway.sim.world",)),
        ("torch", ("hideaway.hw",)),
        ("scipy", ("hideaway.calibrate", "hideaway.campaigns", "hideaway.sweep")),
        ("matplotlib", ("hideaway.report",)),
        ("rich", ("hideaway.console",)),
        ("perfetto", ("hideaway.report",)),
    ],
)
def test_heavy_packages_stay_in_their_folder(package: str, homes: tuple[str, ...]) -> None:
    for path in project_files():
        module = module_of(path)
        if module.startswith("hideaway") and uses(imports_of(path), package):
            assert any(uses({module}, home) for home in homes), f"{path} imports {package}"


def test_packages_are_listed_for_the_wheel() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]
    inits = [path.parent for path in project_files() if path.name == "__init__.py"]
    found = {
        module_of(folder / "__init__.py")
        for folder in inits
        if folder.relative_to(ROOT).parts[0] in FOLDERS.values()
    }
    assert set(settings["packages"]) == found


def test_every_folder_of_code_is_a_package() -> None:
    for path in project_files():
        if path.relative_to(ROOT).parts[0] in FOLDERS.values():
            assert (path.parent / "__init__.py").exists(), f"{path.parent} has no __init__.py"


def test_files_are_short_and_say_what_they_do() -> None:
    for path in project_files():
        text = path.read_text()
        assert text.count("\n") <= MAX_LINES, f"{path} is longer than {MAX_LINES} lines"
        assert ast.get_docstring(ast.parse(text)), f"{path} has no docstring"


def test_the_core_imports_without_heavy_packages() -> None:
    probe = (
        "import sys, hideaway.sim.scheduler, hideaway.sim.world.simulate; "
        "print([name for name in ('torch', 'scipy', 'matplotlib', 'rich', 'perfetto') if name in sys.modules])"
    )
    out = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True).stdout
    assert out.strip() == "[]"


def test_the_type_check_sees_an_error_planted_in_the_core(tmp_path: Path) -> None:
    for folder in ("hideaway", "sim"):
        shutil.copytree(
            ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__", "data")
        )
    (tmp_path / "sim" / "planted.py").write_text('"""Planted."""\n\nNUMBER: int = "text"\n')
    sys.path.insert(0, str(ROOT / "tools"))
    try:
        tree = importlib.import_module("type_tree").build_type_tree(tmp_path)
    finally:
        sys.path.remove(str(ROOT / "tools"))
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path / "cache")]
    run = subprocess.run(
        [*command, "-m", "hideaway.sim.planted"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "MYPYPATH": str(tree)},
        check=False,
    )
    assert run.returncode == 1
    assert "planted.py:3" in run.stdout
