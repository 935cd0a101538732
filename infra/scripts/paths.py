"""The folders of the repository, and its files."""

import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
REQUIREMENTS = ROOT / "infra" / "requirements"
SERVICES = ROOT / "target" / "services"
TOOLS = ROOT / "target" / "tools"


def tracked(*patterns: str) -> list[Path]:
    """Returns the files of the repository, including untracked ones."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "--", *patterns]
    listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    return [ROOT / line for line in listed.splitlines() if (ROOT / line).is_file()]
