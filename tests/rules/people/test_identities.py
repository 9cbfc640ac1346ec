"""Which user an identity of the cluster is."""

from __future__ import annotations

import pytest

from fairlead.model.people.permission import Denied
from fairlead.model.people.rows import ExternalUser, User, UserStatus
from fairlead.model.people.subject import SignInWay, Subject
from fairlead.rules.people.identities import (
    subject_of_user,
    user_of_external,
    user_of_identity,
)

INSTALLER = "system:serviceaccount:kube-system:installer"


def users(**links: ExternalUser) -> dict[str, User]:
    return {name: User(name, "kube-ai", external=link) for name, link in links.items()}


@pytest.mark.parametrize("identity", [INSTALLER, "kubernetes-admin", "anna@example"])
def test_an_identity_is_the_user_that_names_it(identity: str) -> None:
    known = users(
        ruth=ExternalUser("kubernetes", identity),
        bob=ExternalUser("kubernetes", f"{identity}2"),
        eve=ExternalUser(),
    )
    found = user_of_identity(identity, known)
    assert isinstance(found, User) and found.name == "ruth"


def test_a_link_is_for_its_own_way_of_signing_in() -> None:
    known = users(ruth=ExternalUser("oidc", INSTALLER), bob=ExternalUser("ldap", INSTALLER))
    assert user_of_identity(INSTALLER, known) is None
    known = users(ruth=ExternalUser("kubernetes", "1234"))
    assert isinstance(user_of_external("1234", known), Denied)


def test_of_two_users_with_one_identity_it_is_neither() -> None:
    known = users(
        bob=ExternalUser("kubernetes", INSTALLER), ann=ExternalUser("Kubernetes", INSTALLER)
    )
    found = user_of_identity(INSTALLER, known)
    assert isinstance(found, Denied)
    assert (found.code, found.reason) == (
        "no-user",
        f"several users have the external uid `{INSTALLER}`: `ann`, `bob`",
    )


def test_an_account_of_the_users_namespace_is_the_user_of_its_name_alone() -> None:
    account = "system:serviceaccount:kube-ai:bob"
    linked = ExternalUser("kubernetes", account)
    assert user_of_identity(account, users(ruth=linked)) is None
    found = user_of_identity(account, users(ruth=linked, bob=ExternalUser()))
    assert isinstance(found, User) and found.name == "bob"


@pytest.mark.parametrize("identity", ["", "system:anonymous", INSTALLER])
def test_an_identity_without_a_link_has_no_user(identity: str) -> None:
    known = users(ruth=ExternalUser(), bob=ExternalUser("kubernetes", ""))
    assert user_of_identity(identity, known) is None


def test_a_user_is_bound_when_the_account_is_fairleads() -> None:
    for made, is_bound in (("", False), ("another", False), ("ruth", True)):
        user = User("ruth", "kube-ai", status=UserStatus(made))
        found = subject_of_user(user, {}, SignInWay.TOKEN)
        assert isinstance(found, Subject)
        assert (found.is_bound, found.account) == (is_bound, "system:serviceaccount:kube-ai:ruth")
