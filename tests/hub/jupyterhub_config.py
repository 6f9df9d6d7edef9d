"""The hub of `make hub-test`: everybody may log in with one password, and each server is a process on this machine."""

import os
from pathlib import Path

c = get_config()  # noqa: F821  # JupyterHub puts it here
folder, proxy = Path(os.environ["HUB_FOLDER"]), os.environ["HUB_PROXY"]
front, hub, api = (int(port) for port in os.environ["HUB_PORTS"].split())

c.JupyterHub.bind_url = f"http://127.0.0.1:{front}"
c.JupyterHub.hub_bind_url = f"http://127.0.0.1:{hub}"
c.JupyterHub.db_url = f"sqlite:///{folder / 'hub.sqlite'}"
c.JupyterHub.cookie_secret_file = str(folder / "cookie_secret")
c.ConfigurableHTTPProxy.command = [proxy]
c.ConfigurableHTTPProxy.api_url = f"http://127.0.0.1:{api}"
c.ConfigurableHTTPProxy.pid_file = str(folder / "proxy.pid")

c.JupyterHub.authenticator_class = "dummy"
c.DummyAuthenticator.password = os.environ["HUB_PASSWORD"]
c.DummyAuthenticator.allow_all = True

c.JupyterHub.spawner_class = "simple"
c.SimpleLocalProcessSpawner.home_dir_template = str(folder / "homes" / "{username}")
c.Spawner.cmd = ["course", "lab", "--"]  # the only line that is about the course
c.Spawner.start_timeout = c.Spawner.http_timeout = 300

# A hub that stops leaves servers and proxy at work.
c.JupyterHub.cleanup_servers = False
c.JupyterHub.cleanup_proxy = False

# What the idle culler may do, and nothing else.
c.JupyterHub.services = [{"name": "culler", "api_token": os.environ["HUB_CULLER"]}]
c.JupyterHub.load_roles = [
    {
        "name": "culler",
        "services": ["culler"],
        "scopes": ["list:users", "read:users:activity", "read:servers", "delete:servers"],
    }
]
