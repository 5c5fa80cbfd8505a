"""A computer from which somebody connects, with the server's commands beside the adapter's."""

from __future__ import annotations

import cyclopts

from adapter.tests.commands.desk import Desk
from pdpp_mcp_server.commands.connect import CommandContext
from personal_server.cli.doctor import doctor_command
from personal_server.cli.owner import add_owner_profile
from personal_server.cli.reach import reach_command


class OwnerDesk(Desk):
    """That computer, where the server is installed, too."""

    def add_commands(self, app: cyclopts.App, around: CommandContext) -> None:
        super().add_commands(app, around)
        app.command(doctor_command(around), name="doctor")
        app.command(reach_command(around), name="reach")
        owner = cyclopts.App(name="owner")
        add_owner_profile(owner, around, self.folder / "home")
        app.command(owner)
