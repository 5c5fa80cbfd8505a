#!/bin/sh
# The personal server in one file: what follows this script is unpacked once, then started.
set -eu
digest=@DIGEST@
programs=${XDG_DATA_HOME:-${HOME:?pdpp needs HOME or XDG_DATA_HOME, where it unpacks itself}/.local/share}/pdpp/programs
here=$programs/$digest
PDPP_PROGRAM=$(readlink -f -- "$0")

no_room() {
  echo "pdpp: $programs cannot take the program. It needs 300 MB there; XDG_DATA_HOME names another place." >&2
  exit 73
}

if ! [ -x "$here/bin/python3" ]; then
  usual=$(umask)
  umask 077
  mkdir -p -- "$programs" 2>/dev/null || no_room
  unpacked=$(mktemp -d -- "$programs/unpacking.XXXXXX" 2>/dev/null) || no_room
  trap 'rm -rf -- "$unpacked"' EXIT
  trap 'exit 1' HUP INT TERM
  if [ "$(tail -c +@START@ -- "$PDPP_PROGRAM" | sha256sum | cut -d ' ' -f 1)" != "$digest" ]; then
    echo "pdpp: This file is damaged. Download it again." >&2
    exit 65
  fi
  tail -c +@START@ -- "$PDPP_PROGRAM" | tar -xzf - -C "$unpacked" 2>/dev/null || no_room
  # where another start was faster, its folder stands and this one goes
  mv -T -- "$unpacked" "$here" 2>/dev/null || [ -x "$here/bin/python3" ] || no_room
  rm -rf -- "$unpacked"
  trap - EXIT
  umask "$usual"
fi
unset PYTHONHOME PYTHONPATH
export PDPP_PROGRAM
exec "$here/bin/python3" -P -s -m pdpp_mcp_server.commands "$@"
