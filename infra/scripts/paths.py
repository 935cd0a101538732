from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
REQUIREMENTS = ROOT / "infra" / "requirements"
SERVICES = ROOT / "target" / "services"
TOOLS = ROOT / "target" / "tools"
