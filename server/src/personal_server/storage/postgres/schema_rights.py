"""Who else may change a schema, beside those who may do everything.

Rule: who owns a schema may drop its tables and put others in their places, and who may create in it
can put functions before those that statements mean; so what is kept there would be theirs to read.
Source: docs/postgresql.md.
"""

from __future__ import annotations

from personal_server.storage.sql.driver import Session

# A superuser reads everything as it is; a session of one has every role.
_CHANGED_BY_OTHERS = """
SELECT 1 FROM pg_namespace JOIN pg_roles AS owner ON owner.oid = nspowner
WHERE nspname = ? AND (
  NOT (owner.rolsuper OR pg_has_role(nspowner, 'USAGE'))
  OR EXISTS (
    SELECT 1 FROM aclexplode(nspacl)
    WHERE privilege_type = 'CREATE' AND grantee <> nspowner
    AND (grantee = 0 OR NOT pg_has_role(grantee, 'USAGE'))
  )
)
"""


def is_changed_by_others(session: Session, schema: str) -> bool:
    """Whether a role that is none of this session's may change the schema."""
    return session.first(_CHANGED_BY_OTHERS, (schema,)) is not None
