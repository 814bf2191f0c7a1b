# SPDX-License-Identifier: BSD-2-Clause
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("cloud", "0006_copies"),
    ]

    operations = [
        migrations.AddField(
            model_name="backend",
            name=name,
            field=models.CharField(blank=True, default="", max_length=64),
            preserve_default=False,
        )
        for name in ("uuid", "stranger")
    ]
