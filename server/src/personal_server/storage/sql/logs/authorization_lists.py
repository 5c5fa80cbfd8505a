"""The long lists that an owner looks through: what clients hold, and the clients themselves.

Rule: a page is one statement on an index, however long the list is.
"""

from __future__ import annotations

from personal_server.consent.client_registration import CHECK, PRE_REGISTERED
from personal_server.storage.authorization_rows import (
    ClientRow,
    FamilyRow,
    GrantRow,
    PackageMemberRow,
    PackageRow,
)
from personal_server.storage.ports.authorization_store import ClientQuery, HeldQuery
from personal_server.storage.sql.dialect import Value
from personal_server.storage.sql.statements import SUBJECT

Statement = tuple[str, list[Value]]


def held_ids(subject_id: str, query: HeldQuery) -> Statement:
    """Grants that are no member, and packages, as `(id, at_ns)`."""
    grants, of_grants = _grants(subject_id, query)
    packages, of_packages = _packages(subject_id, query)
    return f"{grants} UNION ALL {packages}", [*of_grants, *of_packages]


_ENDS = GrantRow.expires_at_ns
_LASTS = f"{GrantRow.reason} IS NULL AND ({_ENDS} IS NULL OR {_ENDS} > ?)"
_MEMBERS = f"SELECT {PackageMemberRow.grant_id} FROM {PackageMemberRow.table} WHERE {SUBJECT} = ?"  # noqa: S608


def _grants(subject_id: str, query: HeldQuery) -> Statement:
    sql = (
        f"SELECT {GrantRow.grant_id} AS id, {GrantRow.issued_at_ns} AS at_ns"  # noqa: S608
        f" FROM {GrantRow.table} WHERE {SUBJECT} = ? AND {GrantRow.grant_id} NOT IN ({_MEMBERS})"
    )
    values: list[Value] = [subject_id, subject_id]
    if query.client_id is not None:
        sql += f" AND {GrantRow.client_id} = ?"
        values.append(query.client_id)
    if query.lasts is not None:
        sql += f" AND {_if(query.lasts)}({_LASTS})"
        values.append(query.now_ns)
    return sql, values


def _packages(subject_id: str, query: HeldQuery) -> Statement:
    sql = (
        f"SELECT {PackageRow.package_id} AS id, {PackageRow.created_at_ns} AS at_ns"  # noqa: S608
        f" FROM {PackageRow.table} WHERE {SUBJECT} = ?"
    )
    values: list[Value] = [subject_id]
    if query.client_id is not None:
        sql += f" AND {PackageRow.client_id} = ?"
        values.append(query.client_id)
    if query.lasts is not None:
        lasting = (
            f"SELECT {PackageMemberRow.package_id} FROM {PackageMemberRow.table}"  # noqa: S608
            f" JOIN {GrantRow.table} USING ({SUBJECT}, {GrantRow.grant_id})"
            f" WHERE {SUBJECT} = ? AND {_LASTS}"
        )
        lasts = f"{PackageRow.reason} IS NULL AND {PackageRow.package_id} IN ({lasting})"
        sql += f" AND {_if(query.lasts)}({lasts})"
        values += [subject_id, query.now_ns]
    return sql, values


def _if(is_wanted: bool) -> str:
    return "" if is_wanted else "NOT "


def client_conditions(subject_id: str, query: ClientQuery) -> Statement:
    """What clients of a list must be, after the subject."""
    owners = (
        f"SELECT {FamilyRow.client_id} FROM {FamilyRow.table} WHERE {SUBJECT} = ?"  # noqa: S608
        f" AND {FamilyRow.kind} = 'owner' AND {FamilyRow.revoked_at_ns} IS NULL"
        f" AND {FamilyRow.idle_end_ns} > ?"
        f" AND ({FamilyRow.absolute_end_ns} IS NULL OR {FamilyRow.absolute_end_ns} > ?)"
    )
    conditions = (
        f"({ClientRow.first_approved_at_ns} IS NOT NULL OR {ClientRow.blocked_at_ns} IS NOT NULL"
        f" OR {ClientRow.client_id} IN ({owners}))"
    )
    values: list[Value] = [subject_id, query.now_ns, query.now_ns]
    if query.known:
        return f" AND {conditions}", values
    strange = f"{ClientRow.registration} NOT IN (?, ?)"
    return f" AND NOT {conditions} AND {strange}", [*values, PRE_REGISTERED, CHECK]
