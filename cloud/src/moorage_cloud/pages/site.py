# SPDX-License-Identifier: BSD-2-Clause
"""The site that the pages are on, and what all of them share."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from django.contrib import admin, messages
from django.contrib.auth.forms import AuthenticationForm, PasswordChangeForm
from django.contrib.auth.views import PasswordChangeView
from django.db.models import Model, QuerySet
from django.forms import ModelForm
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse

from moorage_cloud.errors import Refusal
from moorage_cloud.identity.models import User
from moorage_cloud.verbs import Caller

from .entry import is_admin

M = TypeVar("M", bound=Model)
if TYPE_CHECKING:
    Base = admin.ModelAdmin
else:  # Django's own are generic in their stubs alone

    class Base(admin.ModelAdmin, Generic[M]):
        """What shows and changes one kind of thing."""


class NewPassword(PasswordChangeForm):
    """A new password ends the tokens of whoever had the old one."""

    def save(self, commit: bool = True) -> User:
        """Set it."""
        del commit
        self.user.renew(self.cleaned_data["new_password1"])
        return self.user


class Site(admin.AdminSite):
    """The pages of the cloud's administrators."""

    site_header = "Volumes over several clusters"
    site_title = "Administration"
    index_title = "What there is"
    site_url = None
    login_form = AuthenticationForm
    enable_nav_sidebar = False

    def has_permission(self, request: HttpRequest) -> bool:
        """Whether who asks is an administrator."""
        return is_admin(request.user)

    def password_change(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> TemplateResponse:
        """Let somebody have another password."""
        view = PasswordChangeView.as_view(
            form_class=NewPassword,
            template_name="registration/password_change_form.html",
            success_url=reverse("admin:password_change_done"),
            extra_context={**self.each_context(request), **(extra_context or {})},
        )
        return cast(TemplateResponse, view(request))


site = Site()


class Pages(Base[M]):
    """Pages of one kind of thing: they show it, and change what `changes` names."""

    changes: Sequence[str] = ()
    list_per_page = 100
    show_full_result_count = False
    actions_selection_counter = False

    def has_view_permission(
        self, request: HttpRequest, _thing: Model | None = None
    ) -> bool:
        """Whether somebody may look: who is here at all."""
        return is_admin(request.user)

    def has_change_permission(
        self, request: HttpRequest, _thing: Model | None = None
    ) -> bool:
        """Whether something can be changed, by the form or by an action."""
        return is_admin(request.user) and bool(self.changes or self.actions)

    def has_add_permission(self, _request: HttpRequest) -> bool:
        """Nothing is made here: commands and the API do that."""
        return False

    def has_delete_permission(
        self, _request: HttpRequest, _thing: Model | None = None
    ) -> bool:
        """Nothing is deleted here: commands and the API do that."""
        return False

    def has_module_permission(self, request: HttpRequest) -> bool:
        """Whether it is in the list of what there is."""
        return is_admin(request.user)

    def get_readonly_fields(
        self, _request: HttpRequest, thing: Model | None = None
    ) -> list[str]:
        """Return all fields but those that commands change, too."""
        shown = [name for name in self.fields or () if isinstance(name, str)]
        return [name for name in shown if thing is None or name not in self.changes]

    def changeform_view(
        self,
        request: HttpRequest,
        object_id: str | None = None,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """Show a thing, or change it; a refusal is told, and changes nothing."""
        try:
            return super().changeform_view(request, object_id, form_url, extra_context)
        except Refusal as refusal:
            messages.error(request, refusal.sentence)
            return HttpResponseRedirect(request.path)

    def save_model(
        self,
        _request: HttpRequest,
        obj: M,
        form: "ModelForm[M]",
        _change: bool,
    ) -> None:
        """Change what the form changed, by a verb."""
        given = {name: form.cleaned_data[name] for name in form.changed_data}
        self.alter(type(obj)._default_manager.get(pk=obj.pk), given)  # noqa: SLF001

    def alter(self, thing: M, given: Mapping[str, Any]) -> None:
        """Change a thing as somebody wants it; it is as it was until then."""
        raise NotImplementedError

    def each(
        self,
        request: HttpRequest,
        chosen: QuerySet[M],
        verb: Callable[[Caller, M], object],
        told: str,
    ) -> None:
        """Do a verb with each of what was chosen; a refusal hinders no other one."""
        who = caller(request)
        done = 0
        for thing in chosen:
            try:
                verb(who, thing)
            except Refusal as refusal:
                messages.error(request, f"{thing}: {refusal.sentence}")
            else:
                done += 1
        if done:
            messages.success(request, f"{told}: {done}")


def caller(request: HttpRequest) -> Caller:
    """Return who asks, as an administrator."""
    return Caller(str(request.user.pk), "", admin=True, request_id="pages")
