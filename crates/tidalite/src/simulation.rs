//! Simulation of the engine: random clients, a failing disk, power losses, and a plain model of the expected content.
//!
//! A seed determines everything. A failure prints the seed, with the shortest sequence of steps found that still fails.
//!
//! `SIMULATE_SEED=n` runs one seed; `SIMULATE_SECONDS=n` runs seeds for this time from a start given by
//! `SIMULATE_FROM=n`; without these variables a fixed number of seeds runs.

mod cells;
mod fixture;
mod model;
mod script;
mod sql;
mod values;
mod world;

use script::{Action, Plan, Script};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};
use world::{Counts, World};

/// Number of seeds of every test run.
const SEEDS: u64 = 25;
/// Time limit of shortening a failing sequence.
const SHORTEN: Duration = Duration::from_secs(60);

struct Failure {
    plan: Plan,
    seed: u64,
    actions: Vec<Action>,
    problem: String,
}

fn play(seed: u64) -> Result<Counts, Failure> {
    let mut script = Script::new(seed);
    let (plan, mut actions) = (script.plan.clone(), Vec::new());
    let played = guarded(|| {
        let mut world = World::new(&plan, seed)?;
        for _ in 0..plan.steps {
            let action = script.next(&world.model);
            actions.push(action);
            world.step(&actions[actions.len() - 1])?;
        }
        finish(&mut world, &mut actions)?;
        Ok(world.counts)
    });
    played.map_err(|problem| Failure { plan, seed, actions, problem })
}

/// Checks that everything is there at the end, and again after a power loss.
fn finish(world: &mut World, actions: &mut Vec<Action>) -> Result<(), String> {
    let last = [
        Action::Mood(tidalite_storage::fs::faulty::Mood::Well),
        Action::Check,
        Action::Reopen,
        Action::Settle,
        Action::Check,
        Action::PowerLoss { survivor: 1 },
    ];
    for action in last {
        actions.push(action);
        world.step(&actions[actions.len() - 1])?;
    }
    Ok(())
}

fn replay(plan: &Plan, seed: u64, actions: &[Action]) -> Result<(), String> {
    guarded(|| {
        let mut world = World::new(plan, seed)?;
        actions.iter().try_for_each(|action| world.step(action))
    })
}

fn guarded<T>(play: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    let text = |panic: Box<dyn std::any::Any + Send>| {
        let text = panic.downcast_ref::<String>().cloned();
        text.or_else(|| panic.downcast_ref::<&str>().map(|s| (*s).to_owned())).unwrap_or_default()
    };
    catch_unwind(AssertUnwindSafe(play)).unwrap_or_else(|panic| Err(format!("panicked: {}", text(panic))))
}

/// Removes steps as long as the sequence still fails.
fn shorten(failure: &mut Failure) {
    let started = Instant::now();
    let mut chunk = failure.actions.len().div_ceil(2);
    while chunk > 0 {
        let mut at = 0;
        while at < failure.actions.len() {
            if started.elapsed() > SHORTEN {
                return;
            }
            let mut fewer = failure.actions.clone();
            fewer.drain(at..(at + chunk).min(failure.actions.len()));
            match replay(&failure.plan, failure.seed, &fewer) {
                Err(problem) if is_like(&problem, &failure.problem) => {
                    (failure.actions, failure.problem) = (fewer, problem);
                }
                _ => at += chunk,
            }
        }
        chunk /= 2;
    }
}

/// Returns true if two problems are equal except for numbers and names.
fn is_like(a: &str, b: &str) -> bool {
    let words = |text: &str| {
        let words = text.split_whitespace().filter(|w| w.chars().all(|c| c.is_ascii_lowercase()));
        words.take(6).map(str::to_owned).collect::<Vec<_>>()
    };
    words(a) == words(b)
}

fn report(mut failure: Failure) -> String {
    let (steps, first) = (failure.actions.len(), failure.problem.clone());
    std::panic::set_hook(Box::new(|_| {}));
    shorten(&mut failure);
    drop(std::panic::take_hook());
    let story: Vec<String> = failure.actions.iter().map(|a| format!("  {a:?}")).collect();
    format!(
        "SIMULATE_SEED={} fails at step {steps}: {first}\n{:?}\n{} steps that fail, too:\n{}\n  {}",
        failure.seed,
        failure.plan,
        failure.actions.len(),
        story.join("\n"),
        failure.problem
    )
}

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

#[test]
fn random_stories_end_as_the_model_says() {
    let (one, from) = (number("SIMULATE_SEED"), number("SIMULATE_FROM"));
    let seconds = number("SIMULATE_SECONDS").map(Duration::from_secs);
    let first = one.or(from).unwrap_or(0);
    let (started, mut counts, mut seed) = (Instant::now(), Counts::default(), first);
    loop {
        match play(seed) {
            Ok(played) => counts.add(played),
            Err(failure) => panic!("{}", report(failure)),
        }
        seed += 1;
        let is_over = match (one, seconds) {
            (Some(_), _) => true,
            (None, Some(seconds)) => started.elapsed() > seconds,
            (None, None) => seed - first == SEEDS,
        };
        if is_over {
            break;
        }
    }
    let took = started.elapsed().as_secs_f64();
    println!("seeds {first} to {}: {counts:?} in {took:.1} s, {:.0} calls/s", seed - 1, counts.calls as f64 / took);
    assert!(counts.calls > 0 && (one.is_some() || counts.late_segments > 0), "{counts:?}");
}
