"""The pages of experiments: real answers of simulated visitors, from the signal to what an admin reads."""

import pytest
from django.contrib.auth.models import Permission
from django.urls import reverse

from evaluation.arms import ExperimentArm
from evaluation.models import Experiment
from retrieval.gates import Gate, PublicationObjection
from retrieval.search.profiles import profiles
from tests.support.experiments import draft, simulate, started, versions
from tests.support.pages import messages, staff
from tests.support.people import make_staff

pytestmark = pytest.mark.django_db

ADD = "/admin/evaluation/experiment/add/"
EVIL = "<script>alert(1)</script>"


def address(experiment, action="change"):
    return reverse(f"admin:evaluation_experiment_{action}", args=[experiment.pk])


def page(client, experiment):
    response = client.get(address(experiment))
    assert response.status_code == 200
    return " ".join(response.content.decode().split())


def body(**changed):
    control, treatment = versions()
    return {
        "name": f"More passages {EVIL}", "hypothesis": "More to choose from.", "control": control.pk,
        "treatment": treatment.pk, "traffic_share": 1.0, "metric": "helpful", **changed,
    }  # fmt: skip


def test_an_experiment_is_saved_and_started_and_then_fixed(admin, admin_user):
    response = admin.post(ADD, body(), follow=True)
    experiment = Experiment.objects.get()
    assert response.redirect_chain[-1][0] == address(experiment)
    text = page(admin, experiment)
    assert EVIL not in text
    assert "Half of the visitors get the treatment" in text
    response = admin.post(address(experiment, "start"), follow=True)
    experiment.refresh_from_db()
    assert (experiment.state, experiment.started_by) == ("running", admin_user)
    text = page(admin, experiment)
    assert "No decision yet: there are too few visitors." in text
    assert "from 100 visitors in each arm on" in text
    again = admin.post(address(experiment, "start"), follow=True)
    assert messages(again) == ["This experiment has been started before."]
    # It can be neither changed nor deleted now.
    assert 'name="_save"' not in text
    assert 'name="metric"' not in text
    assert admin.post(address(experiment), body(name="Another name")).status_code == 403
    assert admin.post(address(experiment, "delete"), {"post": "yes"}).status_code == 403
    admin.post("/admin/evaluation/experiment/", {"action": "delete_selected", "_selected_action": [experiment.pk]})
    experiment.refresh_from_db()
    assert experiment.state == "running"


def test_the_form_begins_with_the_profile_in_force_and_refuses_what_is_wrong(admin):
    control, _ = versions()
    profiles.publish_profile(control)
    assert admin.get(ADD).context["adminform"].form.initial["control"] == control.pk
    response = admin.post(ADD, body(traffic_share=1.5, treatment=""))
    assert set(response.context["adminform"].form.errors) == {"traffic_share", "treatment"}
    assert not Experiment.objects.exists()


def test_a_winner_is_found_on_the_page_and_published(admin, admin_user):
    experiment = started(admin_user)
    simulate(experiment, 300, lambda arm: 0.85 if arm is ExperimentArm.TREATMENT else 0.4)
    text = page(admin, experiment)
    assert "The treatment is better: helpful rate, of the answers that were rated +" in text
    assert "watched" in text
    publish = reverse("admin:retrieval_searchprofile_publish", args=[experiment.treatment_id])
    assert f'action="{publish}"' not in text
    response = admin.post(address(experiment, "end"), follow=True)
    assert messages(response)[0].startswith("Ended. The treatment is better")
    assert f'action="{publish}"' in page(admin, experiment)
    admin.post(publish)
    assert profiles.find_published_version() == experiment.treatment
    result = page(admin, experiment).split('aria-labelledby="experiment-result"')[1].split("</section>")[0]
    assert "<button" not in result
    assert "The treatment is better" in admin.get(address(experiment, "history")).content.decode()


def test_a_control_that_wins_is_put_back(admin, admin_user):
    experiment = started(admin_user, control=None, treatment=versions()[1])
    simulate(experiment, 300, lambda arm: 0.3 if arm is ExperimentArm.TREATMENT else 0.85)
    admin.post(address(experiment, "end"))
    assert "Back to the built-in profile" in page(admin, experiment)


def test_a_draft_tells_what_gates_have_against_its_treatment(admin, monkeypatch):
    objections = [PublicationObjection(f"Not measured {EVIL}", "/admin/")]
    monkeypatch.setattr("retrieval.gates.GATES", [Gate(lambda _: objections, guards=lambda _: False)])
    text = page(admin, draft())
    assert "A gate objects to publishing the treatment." in text
    assert "Not measured &lt;script&gt;" in text
    monkeypatch.setattr("retrieval.gates.GATES", [])
    assert "A gate objects" not in page(admin, draft(name="Another"))


def test_what_may_be_done_depends_on_permissions(client, admin_user):
    experiment = draft()
    client.force_login(staff("change_experiment"))
    # Only users who may publish start what visitors are served.
    assert "<button" not in page(client, experiment).split('id="experiment-plan"')[1].split("</section>")[0]
    assert client.post(address(experiment, "start")).status_code == 403
    client.force_login(admin_user)
    client.post(address(experiment, "start"))
    experiment.refresh_from_db()
    assert experiment.state == "running"
    for number, codename in enumerate(("view_answer", "view_experiment", "change_experiment")):
        user = make_staff(codename)
        user.user_permissions.set(Permission.objects.filter(codename=codename))
        client.force_login(user)
        assert client.get(address(experiment)).status_code == (403 if number == 0 else 200)
        assert client.post(address(experiment, "end")).status_code == (302 if number == 2 else 403)
