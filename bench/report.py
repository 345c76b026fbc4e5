"""Turns the records of a measurement into a Markdown page: a summary by case, then the records as JSON lines."""

import json
import statistics


def spread(values, form="{:.0f}"):
    """Median (min–max); a single value stands alone."""
    values = [v for v in values if v is not None]
    if not values:
        return ""
    if len(values) == 1:
        return form.format(values[0])
    return f"{form.format(statistics.median(values))} ({form.format(min(values))}–{form.format(max(values))})"


def ratio(records, case, system, key, larger_is_better=True):
    base = [r[key] for r in records if r["case"] == case and r["system"] == "questdb" and r.get(key)]
    own = [r[key] for r in records if r["case"] == case and r["system"] == system and r.get(key)]
    if not base or not own or system != "tidalite":
        return ""
    quotient = statistics.median(own) / statistics.median(base)
    return f"{quotient if larger_is_better else 1 / quotient:.2f}×"


def ordered(records):
    seen = []
    for r in records:
        if (r["case"], r["system"]) not in seen:
            seen.append((r["case"], r["system"]))
    return seen


def load_table(records):
    loads = [r for r in records if "visible_s" in r]
    if not loads:
        return []
    lines = ["| case | system | runs | sent s | visible s | visible k rows/s | × QuestDB | MiB/s | settled s | settled k rows/s | × QuestDB "
             "| disk MiB | × QuestDB | server CPU s | client CPU s | other CPU s | sync after s | peak MiB |",
             "|---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|"]
    for case, system in ordered(loads):
        own = [r for r in loads if (r["case"], r["system"]) == (case, system)]

        def column(key, form="{:.1f}", scale=1.0):
            return spread([r[key] / scale if r.get(key) is not None else None for r in own], form)  # noqa: B023

        lines.append("| " + " | ".join([
            case, system, str(len(own)), column("sent_s", "{:.2f}"), column("visible_s", "{:.2f}"), column("visible_rows_s", "{:.0f}", 1e3),
            ratio(loads, case, system, "visible_rows_s"), column("visible_mib_s", "{:.0f}"), column("settled_s", "{:.2f}"),
            column("settled_rows_s", "{:.0f}", 1e3), ratio(loads, case, system, "settled_rows_s"), column("disk_bytes", "{:.0f}", 2**20),
            ratio(loads, case, system, "disk_bytes"), column("server_cpu_s"), column("client_cpu_s"), column("other_cpu_s"),
            column("sync_after_s", "{:.2f}"), column("resident_mib", "{:.0f}"),
        ]) + " |")
    return lines + [""]


def ack_table(records):
    acks = [r for r in records if "loaded_p50_ms" in r]
    if not acks:
        return []
    columns = [f"{when}{kind}_{what}" for when in ("alone", "loaded") for kind, whats in
               (("", ("p50_ms", "p90_ms", "p99_ms", "max_ms", "n")), ("_computation", ("p50_ms", "p99_ms"))) for what in whats]
    titles = [f"{c.split('_')[0]} {'computation ' if 'computation' in c else ''}{c.replace('_ms', '').split('_')[-1]}" for c in columns]
    lines = ["HTTP acknowledgement of 1,000 rows, ms; between requests the client does a fixed computation, whose time shows the machine:",
             "", "| case | system | runs | " + " | ".join(titles) + " | loaded, taken by the host, s | syncs each, alone |", "|---|---|" + "--:|" * (len(columns) + 3)]
    for case, system in ordered(acks):
        own = [r for r in acks if (r["case"], r["system"]) == (case, system)]
        cells = [spread([r.get(c) for r in own], "{:.0f}" if c.endswith("_n") else "{:.2f}") for c in columns]
        lines.append(f"| {case} | {system} | {len(own)} | " + " | ".join(cells)
                     + f" | {spread([r.get('stolen_s') for r in own], '{:.2f}')} | {spread([r.get('syncs_per_ack_alone') for r in own], '{:.2f}')} |")
    return lines + ["", "A hundredth of a run's requests under load are one or two. All runs together:", "",
                    "| case | system | requests alone | p50 | p99 | p99.9 | requests under load | p50 | p99 | p99.9 |", "|---|---|" + "--:|" * 8] + [
        f"| {case} | {system} | {pooled(acks, case, system, 'alone_ms')} | {pooled(acks, case, system, 'loaded_ms')} |"
        for case, system in ordered(acks)] + [""]


def pooled(records, case, system, key):
    values = sorted(v for r in records if (r["case"], r["system"]) == (case, system) for v in r.get(key, []))
    if not values:
        return " | | |"
    return f"{len(values)} | " + " | ".join(f"{values[min(len(values) - 1, int(q * len(values)))]:.2f}" for q in (0.5, 0.99, 0.999))


def agreement(records):
    """Do the systems hold the same rows?"""
    sums = {}
    for r in records:
        if r.get("checksum"):
            sums.setdefault(r["case"], {}).setdefault(json.dumps(r["checksum"], sort_keys=True), set()).add(r["system"])
    apart = [case for case, kinds in sums.items() if len(kinds) > 1]
    if not sums:
        return ""
    return ("Row counts, first and last timestamp and the sums of three columns agree in all runs of all systems."
            if not apart else f"**Contents differ** in {', '.join(apart)}: see the records.")


def write(stem, about, records):
    disk, settings = about["disk"], about["settings"]
    lines = [f"# Ingest, {about['date']}", "",
             f"Machine: {about['cpu']}, {about['cores']} cores, {about['memory_gib']} GiB, Linux {about['kernel']}, {about['file_system']}; client and server share it. "
             f"Disk: fdatasync of 4 KiB {disk['overwrite_sync_ms']:.3f} ms (overwrite), {disk['append_sync_ms']:.3f} ms (append); "
             f"sequential write with sync {disk['sequential_write_mib_s']:.0f} MiB/s.", "",
             f"Commit {about['commit']}. Runs: {settings['runs']}, interleaved; median (lowest–highest). Fresh data folder and server each, warmed up with "
             f"{settings['warm_mib']} MiB into other tables, dropped before the clock. Added to every sync of Tidalite: {settings['sync_delay_ms']} ms. "
             + (f"Load beside acknowledgements: {settings['load_seconds']:.0f} s, into four tables in turns. " if settings.get("load_seconds") else "") +
             f"Settings of Tidalite: {', '.join(settings['env']) or 'default'}. Python {about['python']}, {about['client']}.", ""]
    for name, s in about["systems"].items():
        lines.append(f"- **{name}**: {s['version']}; durability: {s['durability']}; settled: {s['settled']}.")
    lines += ["", "sent: the client is done; visible: count(*) shows all rows; times start with the client's first byte (`tsbs`: the loader's own clock; `df` includes the "
              "client's serialisation). `null server` takes the bytes and forgets them: what the client can do at most on this machine. other CPU: burnt by "
              "processes of others meanwhile (in `null server` rows: including the null server's own). Disk: allocated bytes; QuestDB: the table's folders; Tidalite: the whole data folder, log included.", ""]
    lines += load_table(records) + ack_table(records)
    failed = [r for r in records if "error" in r]
    lines += [f"- FAILED {r['case']} on {r['system']}, run {r['run']}: {r['error']}" for r in failed] + ([""] if failed else [])
    lines += [agreement(records), "", "```json", json.dumps(about, ensure_ascii=False)]
    lines += [json.dumps({k: round(v, 4) if isinstance(v, float) else v for k, v in r.items()}) for r in records] + ["```", ""]
    stem.parent.mkdir(parents=True, exist_ok=True)
    stem.with_name(stem.name + ".md").write_text("\n".join(lines))
