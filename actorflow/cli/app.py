"""The verbs of the command line and their options; each calls the module that does it.

``--json`` prints one JSON object as the last line of stdout and nothing else there; progress and logs go to stderr.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from actorflow.cli.exits import Exit, UsageMistake, exit_code_of
from actorflow.errors import ActorflowError

__all__ = ("app", "run_app")

app = typer.Typer(
    name="actorflow",
    help="Stateful dataflows in plain async Python, with checkpoints.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object as the last line of stdout.")]
LogLevel = Annotated[str, typer.Option("--log-level", help="Of what goes to stderr: debug, info, warning, error.")]
LogFormat = Annotated[str, typer.Option("--log-format", help="text or json.")]


def run_app(arguments: list[str] | None = None) -> int:
    """Run the command line; returns the exit code and never raises for what a person can mend."""
    try:
        code = app(args=arguments, standalone_mode=False)
    except typer.Exit as left:
        return left.exit_code
    except typer.TyperException as mistake:
        show = getattr(mistake, "show", None)
        if show is not None:
            show()
        else:
            print(f"actorflow: {mistake}", file=sys.stderr)
        return Exit.USAGE
    except typer.Abort:
        return Exit.INTERRUPTED
    except (UsageMistake, ActorflowError) as error:
        print(f"actorflow: {error}", file=sys.stderr)
        for note in getattr(error, "__notes__", ()):
            print(f"  {note}", file=sys.stderr)
        return exit_code_of(error)
    return int(code or 0)


@app.command(
    "run",
    context_settings={"help_option_names": []},
    help="Run the job that MODULE:FUNCTION or FILE.py:FUNCTION returns; what follows -- are the function's arguments.",
)
def run_command(
    context: typer.Context,
    target: Annotated[str | None, typer.Argument(metavar="MODULE:FUNCTION")] = None,
    arguments: Annotated[list[str] | None, typer.Argument(metavar="[-- ARGUMENTS]")] = None,
    define: Annotated[
        list[str] | None, typer.Option("-D", metavar="KEY=VALUE", help="A setting, such as checkpoints.every=5s.")
    ] = None,
    config: Annotated[Path | None, typer.Option("--config", help="A TOML file of settings.")] = None,
    start_from: Annotated[
        str | None, typer.Option("--from", "-s", metavar="PATH", help="Start from this snapshot; it is never changed.")
    ] = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Start without state.")] = False,
    rewind: Annotated[bool, typer.Option("--rewind", help="Obey --from again in a home that once did.")] = False,
    record: Annotated[
        Path | None, typer.Option("--record", metavar="FILE", help="Write down what it takes to run this again.")
    ] = None,
    redact: Annotated[bool, typer.Option("--redact", help="Leave the records out of what --record writes.")] = False,
    as_json: Json = False,
    log_level: LogLevel = "warning",
    log_format: LogFormat = "text",
    show_help: Annotated[bool, typer.Option("--help", help="Show this, and after a target what it takes.")] = False,
) -> int:
    """Run a job."""
    if show_help or target is None:
        print(context.get_help())
        if target is not None:
            from actorflow.cli.targets import help_of

            print(f"\n{help_of(target)}")
        return Exit.DONE if show_help else Exit.USAGE
    from actorflow.cli.run import run_target

    return run_target(
        target,
        arguments or [],
        define=define or [],
        config=config,
        start_from=start_from,
        fresh=fresh,
        rewind=rewind,
        as_json=as_json,
        log_level=log_level,
        log_format=log_format,
        record=record,
        redact=redact,
    )


@app.command("demo")
def demo_command(
    as_json: Json = False,
    seed: Annotated[int | None, typer.Option("--seed", help="Draw the moments of the kills from this seed.")] = None,
    keep: Annotated[Path | None, typer.Option("--keep", help="Work in this folder and leave it there.")] = None,
) -> int:
    """Count the words of real text in a process that is killed again and again, and compare."""
    from actorflow.cli.demo import run_demo

    return run_demo(as_json=as_json, seed=seed, keep=keep)


@app.command("bench")
def bench_command(
    name: Annotated[str, typer.Argument(metavar="NAME", help="throughput, latency, memory, simulation or recording.")],
    as_json: Json = False,
    rounds: Annotated[int, typer.Option("--rounds", min=1, help="Measured rounds.")] = 5,
) -> int:
    """Measure a claim on this machine."""
    from actorflow.cli.bench import run_bench

    return run_bench(name, as_json=as_json, rounds=rounds)


@app.command("simulate")
def simulate_command(
    target: Annotated[str | None, typer.Argument(metavar="FILE|FOLDER|MODULE:FUNCTION")] = None,
    arguments: Annotated[list[str] | None, typer.Argument(metavar="[-- ARGUMENTS]")] = None,
    seed: Annotated[int | None, typer.Option("--seed", help="Run this seed alone and print its journal.")] = None,
    seeds: Annotated[
        int | None,
        typer.Option("--seeds", min=1, help="Run the seeds from 1 to this; else a file's own, and 20 of a job."),
    ] = None,
    jobs: Annotated[
        int | None, typer.Option("--jobs", min=1, help="So many processes share them; unless said, one for each core.")
    ] = None,
    picture: Annotated[
        Path | None, typer.Option("--picture", metavar="FILE.svg|FILE.html", help="Draw the one seed.")
    ] = None,
    since: Annotated[
        str | None, typer.Option("--from", metavar="TIME", help="The picture begins here, such as 250ms or 1.5s.")
    ] = None,
    until: Annotated[str | None, typer.Option("--until", metavar="TIME", help="The picture ends here.")] = None,
    shrink: Annotated[
        bool, typer.Option("--shrink", help="Make the first seed that fails small, and keep it as a scenario.")
    ] = False,
    keep: Annotated[
        Path | None, typer.Option("--save", metavar="FILE", help="Keep it here, not in scenarios/regressions.")
    ] = None,
    mutants: Annotated[bool, typer.Option("--mutants", help="Look for planted faults instead.")] = False,
    as_json: Json = False,
    serving: Annotated[bool, typer.Option("--serve", hidden=True)] = False,
) -> int:
    """Run scenarios, or a job under seeded storms of faults, on virtual time, and say what is not as it must be."""
    if mutants:
        from actorflow.cli.hunting import hunt_mutants

        if target is not None or seed is not None or picture is not None or shrink:
            raise UsageMistake("--mutants looks for planted faults: beside it are only --seeds, --jobs and --json")
        return hunt_mutants(seeds=seeds, jobs=jobs, as_json=as_json, serving=serving)
    if target is None:
        raise UsageMistake("what is to be simulated? name a FILE, a FOLDER or a MODULE:FUNCTION")
    from actorflow.cli.simulate import simulate_target

    return simulate_target(
        target,
        arguments or [],
        seed=seed,
        seeds=seeds,
        jobs=jobs,
        as_json=as_json,
        picture=picture,
        since=since,
        until=until,
        shrink=shrink,
        keep=keep,
        serving=serving,
    )
