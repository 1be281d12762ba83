"""What does the table of settings in README say?

``python -m actorflow_tests.house.settings_table`` writes it between its two marks; a test holds it there.
"""

from __future__ import annotations

from actorflow.config.telling import KnownSetting, known_settings
from actorflow_tests.house.sources import REPOSITORY

__all__ = ("README", "settings_table", "with_settings_table")

README = REPOSITORY / "README.md"

BEGIN = "<!-- settings: written by `python -m actorflow_tests.house.settings_table`, checked by a test -->\n"
END = "<!-- settings end -->\n"


def settings_table() -> str:
    """Return the table, one line for each setting."""
    lines = ["| Setting | default | what it says | Flink's key |", "|---|---|---|---|"]
    lines += [_line(setting) for setting in known_settings()]
    return "\n".join(lines) + "\n"


def _line(setting: KnownSetting) -> str:
    name = f"`{setting.name}`" + (f" ({setting.strategy})" if setting.strategy else "")
    says = setting.says + ("; *later*" if setting.later else "")
    flink = f"`{setting.flink[0]}`" if setting.flink else "–"
    return f"| {name} | `{setting.default}` | {says} | {flink} |"


def with_settings_table(text: str) -> str:
    """Return a README with the table as it should be."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{settings_table()}\n{END}{after}"


if __name__ == "__main__":
    README.write_text(with_settings_table(README.read_text("utf-8")), "utf-8")
