"""Who else may change a schema, beside those who may do everything.

Rule: who owns a schema may drop its tables and put others in their places, and who may create in it
can put functions before those that statements mean; so what is kept there would be theirs to read.
A group that owns it or may create in it has no other member.
Source: docs/postgresql.md.
"""

from __future__ import annotations

from personal_server.storage.sql.driver import Session

# A superuser reads everything as it is; a session of one has every role.  The role 0 is everybody;
# `pg_database_owner`, which owns `public`, is whoever owns the database.
_CHANGED_BY_OTHERS = """
SELECT 1 FROM pg_namespace CROSS JOIN LATERAL (
  SELECT nspowner AS changer
  UNION SELECT grantee FROM aclexplode(nspacl) WHERE privilege_type = 'CREATE'
) AS changers
LEFT JOIN pg_roles AS named ON named.oid = changer
LEFT JOIN pg_database ON named.rolname = 'pg_database_owner' AND datname = current_database()
LEFT JOIN pg_roles AS meant ON meant.oid = coalesce(datdba, changer)
WHERE nspname = ? AND meant.rolsuper IS NOT TRUE
AND (changer = 0 OR NOT pg_has_role(changer, 'USAGE') OR EXISTS (
  SELECT 1 FROM pg_roles AS member
  WHERE meant.rolname <> current_user AND member.oid <> meant.oid
  AND member.rolname <> current_user AND NOT member.rolsuper
  AND pg_has_role(member.oid, meant.oid, 'MEMBER')
))
LIMIT 1
"""


def is_changed_by_others(session: Session, schema: str) -> bool:
    """Whether a role that is none of this session's may change the schema."""
    return session.first(_CHANGED_BY_OTHERS, (schema,)) is not None
