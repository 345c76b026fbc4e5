"""Django over psycopg 3: models of existing tables, queries, transactions, introspection; the same tests on Tidalite and on PostgreSQL.

Tables are created by SQL: Django's migrations declare columns NOT NULL and numbers made by the server, which Tidalite rejects
(docs/sql/ddl.md).
"""

import datetime as dt
import math
import uuid
from decimal import Decimal

import django
import kinds
import pytest
from django.conf import settings
from django.db import migrations as steps
from django.db import DatabaseError, InternalError, ProgrammingError, connections, models, transaction
from django.db.migrations.recorder import MigrationRecorder
from django.db.migrations.state import ProjectState
from django.db.models import Avg, Case, Count, Exists, F, Max, OuterRef, Q, Subquery, Sum, Value, When, Window
from django.db.models.functions import Coalesce, Concat, ExtractHour, Length, Lower, RowNumber, TruncDay, TruncHour, Upper

DATABASE = {"ENGINE": "django.db.backends.postgresql", "NAME": "tidalite", "HOST": "127.0.0.1", "USER": "postgres"}
settings.configure(DATABASES={"default": DATABASE}, INSTALLED_APPS=["django.contrib.postgres"], USE_TZ=False, TIME_ZONE="UTC", DEFAULT_AUTO_FIELD="django.db.models.BigAutoField")
django.setup()
from django.contrib.postgres.fields import ArrayField  # noqa: E402 (needs settings)


class Kinds(models.Model):
    id = models.BigIntegerField(primary_key=True)
    b = models.BooleanField(null=True)
    i2 = models.SmallIntegerField(null=True)
    i4 = models.IntegerField(null=True)
    i8 = models.BigIntegerField(null=True)
    f4 = models.FloatField(null=True)
    f8 = models.FloatField(null=True)
    n = models.DecimalField(max_digits=18, decimal_places=3, null=True)
    at = models.DateTimeField(null=True)
    d = models.DateField(null=True)
    t = models.TextField(null=True)
    bin = models.BinaryField(null=True)
    u = models.UUIDField(null=True)
    arr = ArrayField(models.FloatField(null=True), null=True)

    class Meta:
        app_label, managed, db_table = "checks", False, "django_kinds"


class Reading(models.Model):
    id = models.BigIntegerField(primary_key=True)
    host = models.TextField(null=True)
    value = models.FloatField(null=True)
    at = models.DateTimeField()

    class Meta:
        app_label, managed, db_table = "checks", False, "django_readings"


@pytest.fixture
def using(side):
    """The alias of the database of a side, with the tables of the models."""
    connections.settings[side.name] = {**connections.settings["default"], "PORT": str(side.port)}
    connection = connections[side.name]
    with connection.cursor() as cursor:
        columns = ", ".join(f"{name} {kind}" for name, kind in kinds.COLUMNS.items() if name != "j")
        for table, definition in [("django_kinds", columns), ("django_readings", "id bigint, host text, value double precision, at timestamp")]:
            cursor.execute(f"DROP TABLE IF EXISTS {table}")
            cursor.execute(f"CREATE TABLE {table} ({definition})")
    yield side.name
    connection.close()


@pytest.fixture
def readings(using):
    rows = [Reading(id=n, host=None if n == 9 else f"Host_{n % 3}", value=n / 2, at=dt.datetime(2024, 1, 1 + n // 4, n)) for n in range(10)]
    Reading.objects.using(using).bulk_create(rows, batch_size=4)
    return Reading.objects.using(using)


NAMES = [name for name in kinds.COLUMNS if name != "j"]


def test_values_of_all_types(using):
    for row in kinds.ROWS:
        values = {name: value for name, value in zip(kinds.COLUMNS, row) if name != "j"}
        Kinds(**values).save(using=using, force_insert=True)
    # Values are written into the statement, where PostgreSQL reads -0.0 as a NUMERIC.
    rows = Kinds.objects.using(using).order_by("id").values_list(*NAMES)
    kinds.check_rows(rows, NAMES, has_signed_zero=False)
    kinds.check_rows([[getattr(one, name) for name in NAMES] for one in Kinds.objects.using(using).order_by("id").iterator(chunk_size=2)], NAMES, has_signed_zero=False)
    for name, value, found in [("n", Decimal("-0.001"), [4]), ("u", uuid.UUID(int=1), [4]), ("at", dt.datetime(1970, 1, 1), [4]), ("d", dt.date(9999, 12, 30), [2]), ("bin", bytes(range(256)), [2]), ("t", kinds.ODD, [2]),
                               ("f8", 5e-324, [2]), ("i8", 2**63 - 1, [2]), ("b", True, [1, 3]), ("arr", [], [1]), ("arr__len", 3, [3]), ("arr__contains", [0.1], [2]), ("t", None, [5, 6])]:
        lookup = {f"{name}__isnull": True} if value is None else {name: value}
        assert list(Kinds.objects.using(using).filter(**lookup).order_by("id").values_list("id", flat=True)) == found, name


def test_lookups(readings):
    ids = lambda *conditions, **lookups: sorted(readings.filter(*conditions, **lookups).values_list("id", flat=True))
    assert ids(host="Host_1") == ids(host__iexact="hOST_1") == ids(host__endswith="_1") == ids(host__regex=r"^H.*1$") == ids(host__iregex="host_1") == [1, 4, 7]
    assert ids(host__contains="t_2") == ids(host__icontains="T_2") == ids(host__startswith="Host_2") == [2, 5, 8]
    assert ids(host__isnull=True) == [9] and ids(~Q(host="Host_1"), id__lt=4) == [0, 2, 3]
    assert ids(host__contains="%") == [] and ids(host__contains="_") == list(range(9))
    assert ids(id__in=[1, 2, 50]) == [1, 2] and ids(value__range=(1, 2)) == [2, 3, 4] and ids(Q(value__gte=4) | Q(host="Host_0")) == [0, 3, 6, 8, 9]
    assert ids(at__date=dt.date(2024, 1, 2)) == [4, 5, 6, 7] and ids(at__year=2024, at__hour__gte=8) == [8, 9] and ids(at__gt=dt.datetime(2024, 1, 3)) == [8, 9] and ids(at__week_day=2) == [0, 1, 2, 3]
    assert readings.filter(id=3).exists() and not readings.filter(id=33).exists() and readings.count() == 10 and readings.in_bulk([1, 99])[1].value == 0.5
    assert [one.id for one in readings.order_by(F("host").desc(nulls_last=True), "-id")[2:5]] == [2, 7, 4] and readings.latest("at").id == 9 and readings.first().id == 0


def test_aggregates(readings):
    assert readings.aggregate(n=Count("*"), hosts=Count("host", distinct=True), total=Sum("value"), mean=Avg("id"), last=Max("at"), few=Count("id", filter=Q(value__lt=1))) == {
        "n": 10, "hosts": 3, "total": 22.5, "mean": 4.5, "last": dt.datetime(2024, 1, 3, 9), "few": 2}
    assert list(readings.values("host").annotate(n=Count("id"), top=Max("value")).filter(n__gt=2).order_by("host").values_list("host", "n", "top")) == [("Host_0", 3, 3.0), ("Host_1", 3, 3.5), ("Host_2", 3, 4.0)]
    assert list(readings.annotate(day=TruncDay("at")).values("day").annotate(n=Count("*")).order_by("day").values_list("day", "n")) == [(dt.datetime(2024, 1, 1), 4), (dt.datetime(2024, 1, 2), 4), (dt.datetime(2024, 1, 3), 2)]
    assert readings.annotate(hour=TruncHour("at"), h=ExtractHour("at")).values_list("hour", "h").get(id=7) == (dt.datetime(2024, 1, 2, 7), 7)
    assert list(readings.dates("at", "day")) == [dt.date(2024, 1, 1), dt.date(2024, 1, 2), dt.date(2024, 1, 3)] and list(readings.datetimes("at", "month")) == [dt.datetime(2024, 1, 1)]


def test_expressions(readings):
    text = lambda value: Value(value, output_field=models.TextField())
    kind = Case(When(value__lt=1, then=Value("low")), When(value__lt=4, then=Value("mid")), default=Value("high"), output_field=models.TextField())
    assert list(readings.annotate(kind=kind).order_by("id").values_list("kind", flat=True)) == ["low"] * 2 + ["mid"] * 6 + ["high"] * 2
    assert readings.annotate(name=Upper(Concat(Coalesce("host", text("none")), text("-x"))), size=Length("host"), low=Lower("host")).values_list("name", "size", "low").get(id=9) == ("NONE-X", None, None)
    newest = readings.filter(host=OuterRef("host")).order_by("-at")
    assert sorted(readings.filter(id=Subquery(newest.values("id")[:1])).values_list("id", flat=True)) == [6, 7, 8]
    assert sorted(readings.filter(Exists(readings.filter(host=OuterRef("host"), id__gt=OuterRef("id")))).values_list("id", flat=True)) == [0, 1, 2, 3, 4, 5]
    ranked = readings.annotate(rank=Window(RowNumber(), partition_by="host", order_by="-at"), total=Window(Sum("value"), partition_by="host"))
    assert sorted(ranked.filter(rank=1, host__isnull=False).values_list("id", "total")) == [(6, 4.5), (7, 6.0), (8, 7.5)]
    assert sorted(readings.filter(id__lt=3).union(readings.filter(id__gt=7)).values_list("id", flat=True)) == [0, 1, 2, 8, 9]
    assert sorted(readings.filter(id__lt=5).difference(readings.filter(id__lt=3)).values_list("id", flat=True)) == [3, 4]
    assert [one.id for one in readings.exclude(host=None).order_by("host", "-id").distinct("host")] == [6, 7, 8]


def test_changes(readings, using):
    assert readings.filter(id__lt=3).update(value=F("value") + 100) == 3 and readings.get(id=2).value == 101.0
    one = readings.get(id=5)
    one.value, one.host = math.nan, "it's \\ % ü"
    one.save()
    one.refresh_from_db()
    assert math.isnan(one.value) and one.host == "it's \\ % ü"
    assert readings.filter(id__gte=8).delete() == (2, {"checks.Reading": 2}) and one.delete() == (1, {"checks.Reading": 1})
    changed = list(readings.filter(id__in=[6, 7]))
    for each in changed:
        each.value = each.id * 10
    assert readings.bulk_update(changed, ["value"]) == 2 and list(readings.filter(id__in=[6, 7]).order_by("id").values_list("value", flat=True)) == [60.0, 70.0]
    made, created = readings.get_or_create(id=50, defaults={"host": "new", "at": dt.datetime(2024, 5, 1)})
    assert created and readings.get_or_create(id=50)[1] is False and readings.count() == 8
    with connections[using].cursor() as cursor:
        cursor.executemany("INSERT INTO django_readings (id, at) VALUES (%s, %s)", [(n, dt.datetime(2025, 1, 1)) for n in range(100, 103)])
        cursor.execute("SELECT id, at FROM django_readings WHERE id >= %s ORDER BY id", [101])
        assert cursor.fetchall() == [(101, dt.datetime(2025, 1, 1)), (102, dt.datetime(2025, 1, 1))] and [column[0] for column in cursor.description] == ["id", "at"]
    assert [one.id for one in readings.raw("SELECT * FROM django_readings WHERE id > %s ORDER BY id", [100])] == [101, 102]


def test_transactions(readings, using):
    with pytest.raises(ZeroDivisionError), transaction.atomic(using=using):
        readings.all().delete()
        raise ZeroDivisionError
    with transaction.atomic(using=using):
        readings.filter(id=0).delete()
        with pytest.raises(ProgrammingError), transaction.atomic(using=using):
            readings.filter(id=1).delete()
            connections[using].cursor().execute("SELECT * FROM no_such_table")
        point = transaction.savepoint(using=using)
        readings.filter(id=2).delete()
        transaction.savepoint_rollback(point, using=using)
    assert sorted(readings.values_list("id", flat=True)) == list(range(1, 10))
    with pytest.raises(InternalError, match="current transaction is aborted"), transaction.atomic(using=using):
        with pytest.raises(DatabaseError):
            connections[using].cursor().execute("SELECT 1/0")
        readings.count()
    assert readings.count() == 9


def migrate(connection, state, *operations):
    """Runs the operations of a migration as one transaction and returns the new state."""
    with connection.schema_editor(atomic=True) as editor:
        for operation in operations:
            new = state.clone()
            operation.state_forwards("checks", new)
            operation.database_forwards("checks", editor, state, new)
            state = new
    return state


def test_migrations(using):
    connection = connections[using]
    with connection.cursor() as cursor:
        for table in ["django_migrations", "django_sensors", "django_devices"]:
            cursor.execute(f"DROP TABLE IF EXISTS {table}")
        # Django would number the rows of its own table, which Tidalite does not.
        cursor.execute("CREATE TABLE django_migrations (id bigint, app text, name text, applied timestamp)")
    model = steps.CreateModel("Sensor", [("id", models.BigIntegerField(primary_key=True)), ("name", models.TextField(null=True))], {"db_table": "django_sensors"})
    state = migrate(connection, ProjectState(), steps.RunSQL("CREATE TABLE django_sensors (id bigint, name text)", "DROP TABLE django_sensors", state_operations=[model]))
    state = migrate(connection, state, steps.AddField("sensor", "value", models.FloatField(null=True)), steps.AddField("sensor", "at", models.DateTimeField(null=True)))
    fill = lambda apps, editor: apps.get_model("checks", "Sensor").objects.using(using).create(id=1, name="a", value=1.5, at=dt.datetime(2024, 1, 1))
    state = migrate(connection, state, steps.RunPython(fill), steps.RenameField("sensor", "value", "amount"), steps.AlterModelTable("sensor", "django_devices"))
    with pytest.raises(DatabaseError):
        migrate(connection, state, steps.RunSQL("DELETE FROM django_devices"), steps.RunSQL("SELECT 1/0"))
    state = migrate(connection, state, steps.RenameModel("sensor", "Device"), steps.AlterField("device", "name", models.TextField(null=True, verbose_name="label")))
    assert list(state.apps.get_model("checks", "Device").objects.using(using).values_list("id", "name", "amount", "at")) == [(1, "a", 1.5, dt.datetime(2024, 1, 1))]
    recorder = MigrationRecorder(connection)
    recorder.record_applied("checks", "0001")
    recorder.record_applied("checks", "0002")
    recorder.record_unapplied("checks", "0002")
    assert set(recorder.applied_migrations()) == {("checks", "0001")}


def test_introspection(using):
    connection = connections[using]
    introspection = connection.introspection
    with connection.cursor() as cursor:
        assert {"django_kinds", "django_readings"} <= set(introspection.table_names(cursor))
        described = {column.name: (introspection.get_field_type(column.type_code, column), column.null_ok) for column in introspection.get_table_description(cursor, "django_kinds") if column.name != "arr"}
        assert described == {name: (kind, True) for name, kind in {
            "id": "BigIntegerField", "b": "BooleanField", "i2": "SmallIntegerField", "i4": "IntegerField", "i8": "BigIntegerField", "f4": "FloatField", "f8": "FloatField", "n": "DecimalField", "at": "DateTimeField",
            "d": "DateField", "t": "TextField", "bin": "BinaryField", "u": "UUIDField"}.items()}
        assert introspection.get_relations(cursor, "django_kinds") == {} and introspection.get_sequences(cursor, "django_kinds") == []


def test_plans(readings):
    assert "django_readings" in readings.filter(id=1).explain()
