# SPDX-License-Identifier: BSD-2-Clause
"""Users, projects, roles and who has which: to be looked at.

They are made and changed by the administrator's commands.
"""

from msgspec import Struct

from moorage_cloud.api.wire.address import address
from moorage_cloud.api.wire.call import Call
from moorage_cloud.api.wire.routes import Routes
from moorage_cloud.errors import NotFound
from moorage_cloud.identity import login
from moorage_cloud.identity.models import Assignment, Project, Role, User

routes = Routes()
DOMAIN = login.DOMAIN


class Self(Struct, frozen=True):
    """Where something is."""

    self: str


class ProjectShown(Struct, frozen=True, kw_only=True):
    """A project."""

    id: str
    name: str
    description: str
    enabled: bool
    domain_id: str = DOMAIN
    parent_id: str = DOMAIN
    is_domain: bool = False
    tags: list[str] = []
    options: dict[str, str] = {}
    links: Self


class UserShown(Struct, frozen=True, kw_only=True):
    """A user."""

    id: str
    name: str
    description: str
    email: str | None
    enabled: bool
    domain_id: str = DOMAIN
    default_project_id: str | None
    password_expires_at: str | None = None
    options: dict[str, str] = {}
    links: Self


class RoleShown(Struct, frozen=True, kw_only=True):
    """A role."""

    id: str
    name: str
    domain_id: str | None = None
    description: str | None = None
    options: dict[str, str] = {}
    links: Self


class DomainShown(Struct, frozen=True, kw_only=True):
    """The domain."""

    id: str = DOMAIN
    name: str = "Default"
    description: str = "Everybody is in it"
    enabled: bool = True
    tags: list[str] = []
    options: dict[str, str] = {}
    links: Self


class Pages(Struct, frozen=True):
    """Where a list is: all of it is on one page."""

    self: str
    next: str | None = None
    previous: str | None = None


class OneProject(Struct, frozen=True):
    """A project."""

    project: ProjectShown


class Projects(Struct, frozen=True):
    """Projects."""

    projects: list[ProjectShown]
    links: Pages


class OneUser(Struct, frozen=True):
    """A user."""

    user: UserShown


class Users(Struct, frozen=True):
    """Users."""

    users: list[UserShown]
    links: Pages


class OneRole(Struct, frozen=True):
    """A role."""

    role: RoleShown


class Roles(Struct, frozen=True):
    """Roles."""

    roles: list[RoleShown]
    links: Pages


class OneDomain(Struct, frozen=True):
    """The domain."""

    domain: DomainShown


class Domains(Struct, frozen=True):
    """The domains: one."""

    domains: list[DomainShown]
    links: Pages


class Id(Struct, frozen=True):
    """Something by its id."""

    id: str


class InProject(Struct, frozen=True):
    """Where a role is had."""

    project: Id


class AssignmentShown(Struct, frozen=True):
    """Who has which role where."""

    user: Id
    role: Id
    scope: InProject


class Assignments(Struct, frozen=True):
    """Who has which roles where."""

    role_assignments: list[AssignmentShown]
    links: Pages


class ByName(Struct, frozen=True):
    """What a list is to have."""

    name: str | None = None
    domain_id: str | None = None


@routes("GET", "/auth/projects")
@routes("GET", "/users/{user_id}/projects", rule="identity:list_user_projects")
def list_own(call: Call, user_id: str = "") -> Projects:
    """List the projects in which somebody has a role: who asks, if nobody is named."""
    _self_or_admin(call, user_id)
    return _projects(call, login.projects_of(user_id or call.identity.user_id))


@routes("GET", "/projects", rule="identity:list_projects")
def list_projects(call: Call, query: ByName) -> Projects:
    """List projects."""
    found = Project.objects.all()
    if query.name is not None:
        found = found.filter(name=query.name)
    return _projects(call, list(found) if _is_here(query.domain_id) else [])


@routes("GET", "/projects/{project_id}")
def show_project(call: Call, project_id: str) -> OneProject:
    """Show a project: one's own, or any for administrators."""
    found = Project.objects.filter(pk=project_id).first()
    mine = project_id == call.identity.project_id
    if found is None or not (mine or call.may("identity:get_project")):
        raise NotFound(f"Could not find project: {project_id}.")
    return OneProject(_project(call, found))


@routes("GET", "/users", rule="identity:list_users")
def list_users(call: Call, query: ByName) -> Users:
    """List users."""
    found = User.objects.all()
    if query.name is not None:
        found = found.filter(name=query.name)
    here = found if _is_here(query.domain_id) else found.none()
    return Users([_user(call, one) for one in here], _pages(call))


@routes("GET", "/users/{user_id}")
def show_user(call: Call, user_id: str) -> OneUser:
    """Show a user: oneself, or anybody for administrators."""
    _self_or_admin(call, user_id)
    found = User.objects.filter(pk=user_id).first()
    if found is None:
        raise NotFound(f"Could not find user: {user_id}.")
    return OneUser(_user(call, found))


@routes("GET", "/roles", rule="identity:list_roles")
def list_roles(call: Call, query: ByName) -> Roles:
    """List roles."""
    found = [role for role in Role if query.name in {None, role.value}]
    return Roles([_role(call, role) for role in found], _pages(call))


@routes("GET", "/roles/{role_id}", rule="identity:get_role")
def show_role(call: Call, role_id: str) -> OneRole:
    """Show a role."""
    if role_id not in Role.values:
        raise NotFound(f"Could not find role: {role_id}.")
    return OneRole(_role(call, Role(role_id)))


@routes("GET", "/role_assignments", rule="identity:list_role_assignments")
def list_assignments(call: Call) -> Assignments:
    """List who has which role where."""
    found = [
        AssignmentShown(Id(one.user_id), Id(one.role), InProject(Id(one.project_id)))
        for one in Assignment.objects.order_by("pk")
    ]
    return Assignments(found, _pages(call))


@routes("GET", "/domains", rule="identity:list_domains")
def list_domains(call: Call, query: ByName) -> Domains:
    """List the domains: one."""
    found = [_domain(call)] if query.name in {None, "Default"} else []
    return Domains(found, _pages(call))


@routes("GET", "/domains/{domain_id}", rule="identity:get_domain")
def show_domain(call: Call, domain_id: str) -> OneDomain:
    """Show the domain."""
    if not _is_here(domain_id):
        raise NotFound(f"Could not find domain: {domain_id}.")
    return OneDomain(_domain(call))


def _self_or_admin(call: Call, user_id: str) -> None:
    if user_id and user_id != call.identity.user_id:
        call.check("identity:get_user")


def _is_here(domain_id: str | None) -> bool:
    return domain_id in {None, DOMAIN}


def _projects(call: Call, found: list[Project]) -> Projects:
    return Projects([_project(call, one) for one in found], _pages(call))


def _project(call: Call, one: Project) -> ProjectShown:
    return ProjectShown(
        id=one.pk,
        name=one.name,
        description=one.description,
        enabled=one.enabled,
        links=_at(call, "projects", one.pk),
    )


def _user(call: Call, one: User) -> UserShown:
    return UserShown(
        id=one.pk,
        name=one.name,
        description=one.description,
        email=one.email or None,
        enabled=one.enabled,
        default_project_id=one.default_project_id,
        links=_at(call, "users", one.pk),
    )


def _role(call: Call, role: Role) -> RoleShown:
    return RoleShown(
        id=role.value, name=role.value, links=_at(call, "roles", role.value)
    )


def _domain(call: Call) -> DomainShown:
    return DomainShown(links=_at(call, "domains", DOMAIN))


def _at(call: Call, what: str, key: str) -> Self:
    return Self(f"{call.base}/{what}/{key}")


def _pages(call: Call) -> Pages:
    return Pages(address(call.request))
