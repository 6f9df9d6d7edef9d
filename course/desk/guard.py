"""The token, the XSRF check and the origin of the course's server, whatever a user's own Jupyter configuration says.

A configuration that was written for a notebook server behind a proxy (`c.ServerApp.token = ""`, `allow_origin = "*"`)
would let any page in the learner's browser start kernels. What stands on the command line counts as asked for.

A server extension of `course lab` alone: on a hub, the hub says who gets in.
"""

from __future__ import annotations

import secrets
from typing import Any

ORIGINS = ("allow_origin", "allow_origin_pat", "allow_credentials")
ACCESS = ("token", "password", "hashed_password")


def close(app: Any) -> list[str]:
    """Ask for a token again, check XSRF again, and let no foreign page in; return a sentence for each change.

    app: a ServerApp that is initialized and does not listen yet. What its command line says stays.
    """
    typed = {name for part in app.cli_config.values() if hasattr(part, "keys") for name in part}
    settings, identity, changes = app.web_app.settings, app.identity_provider, []
    if not typed & set(ACCESS) and not identity.auth_enabled:
        identity.token, identity.token_generated = secrets.token_hex(24), True
        changes.append("asks for a token, which your Jupyter configuration switches off")
    if "disable_check_xsrf" not in typed and settings.get("disable_check_xsrf"):
        settings["disable_check_xsrf"] = False
        changes.append("checks requests for forgery (XSRF), which your Jupyter configuration switches off")
    if not typed & set(ORIGINS) and any(settings.get(name) for name in ORIGINS):
        settings.update(allow_origin="", allow_origin_pat=None, allow_credentials=False)
        changes.append("answers its own pages alone, where your Jupyter configuration lets others in")
    return [f"The course's server {change}." for change in changes]


def _jupyter_server_extension_points() -> list[dict[str, str]]:
    return [{"module": "course.desk.guard"}]


def _load_jupyter_server_extension(app: Any) -> None:
    for change in close(app):
        app.log.warning(change)
