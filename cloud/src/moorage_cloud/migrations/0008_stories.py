# SPDX-License-Identifier: BSD-2-Clause
"""Stories of volumes; what is on record of verbs that are over begins them."""

import django.db.models.deletion
from django.apps.registry import Apps
from django.db import migrations, models

_EPOCHS = 1 << 20
_BATCH = 500


def tell(apps: Apps, _schema: object) -> None:
    operations = apps.get_model("cloud", "Operation").objects
    entries = apps.get_model("cloud", "StoryEntry")
    over = operations.exclude(ended=None).exclude(volume=None).order_by("id")
    known = over.select_related("volume", "snapshot", "server", "backend")
    batch = []
    for one in known.iterator(chunk_size=_BATCH):
        volume = one.volume
        assert volume is not None  # noqa: S101 - they were chosen so
        server = None if one.server is None or one.server.helper else one.server
        batch.append(
            entries(
                volume=volume,
                what=one.verb,
                about=f"snapshot {one.snapshot.uuid}" if one.snapshot else "",
                result=one.result,
                why=one.why,
                # A transfer may have been in between: then it was somebody else's.
                project=volume.project if one.userid == volume.userid else "",
                userid=one.userid,
                server=server.name if server else "",
                server_uuid=str(server.uuid) if server else "",
                cluster=one.backend.clustername,
                epoch=one.generation * _EPOCHS if "take" in one.acts else None,
                size=one.size,
                request_id=one.request_id,
                began=one.created,
                ended=one.ended,
            )
        )
        if len(batch) == _BATCH:
            entries.objects.bulk_create(batch)
            batch.clear()
    entries.objects.bulk_create(batch)


class Migration(migrations.Migration):
    dependencies = [
        ("cloud", "0007_who_answers"),
    ]

    operations = [
        migrations.AddField(
            model_name="operation",
            name="jobs",
            field=models.JSONField(default=list),
        ),
        migrations.CreateModel(
            name="StoryEntry",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True,
                        primary_key=True,
                        serialize=False,
                        verbose_name="ID",
                    ),
                ),
                ("what", models.CharField(max_length=16)),
                ("about", models.CharField(blank=True, max_length=300)),
                ("result", models.CharField(default="done", max_length=16)),
                ("why", models.TextField(blank=True)),
                ("project", models.CharField(max_length=255)),
                ("userid", models.CharField(blank=True, max_length=100)),
                ("server", models.CharField(blank=True, max_length=255)),
                ("server_uuid", models.CharField(blank=True, max_length=36)),
                ("cluster", models.CharField(blank=True, max_length=128)),
                ("epoch", models.BigIntegerField(null=True)),
                ("jobs", models.JSONField(default=list)),
                ("size", models.PositiveIntegerField()),
                ("request_id", models.CharField(blank=True, max_length=64)),
                ("began", models.DateTimeField()),
                ("ended", models.DateTimeField(null=True)),
                (
                    "volume",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="story",
                        to="cloud.volume",
                    ),
                ),
            ],
            options={"verbose_name_plural": "story entries", "ordering": ("id",)},
        ),
        migrations.RunPython(tell, migrations.RunPython.noop),
    ]
