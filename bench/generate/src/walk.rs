//! How the values of a measurement move from one tick to the next.

use crate::random::Random;

#[derive(Clone, Copy, Debug)]
pub enum Step {
    Normal(f64, f64),
    Uniform(f64, f64),
}

impl Step {
    #[inline]
    fn draw(self, random: &mut Random) -> f64 {
        match self {
            Step::Normal(mean, deviation) => random.normal() * deviation + mean,
            Step::Uniform(low, high) => random.uniform(low, high),
        }
    }
}

/// What becomes of a value and a step.
#[derive(Clone, Copy, Debug)]
pub enum Law {
    Free,
    Growing,
    Clamped(f64, f64),
}

#[derive(Clone, Copy, Debug)]
pub struct Walk {
    pub value: f64,
    step: Step,
    law: Law,
}

impl Walk {
    #[must_use]
    pub fn new(step: Step, law: Law, value: f64) -> Walk {
        Walk { value, step, law }
    }

    /// |step| is added.
    #[must_use]
    pub fn growing(mean: f64) -> Walk {
        Walk::new(Step::Normal(mean, 1.0), Law::Growing, 0.0)
    }

    #[must_use]
    pub fn clamped(mean: f64, low: f64, high: f64, start: f64) -> Walk {
        Walk::new(Step::Normal(mean, 1.0), Law::Clamped(low, high), start)
    }

    #[inline]
    pub fn tick(&mut self, random: &mut Random) {
        let step = self.step.draw(random);
        self.value = match self.law {
            Law::Free => self.value + step,
            Law::Growing => self.value + step.abs(),
            Law::Clamped(low, high) => {
                let value = self.value + step;
                if value < low {
                    low
                } else if value > high {
                    high
                } else {
                    value
                }
            }
        };
    }
}

/// Cut after so many digits behind the point, towards zero.
#[must_use]
pub fn cut(value: f64, digits: i32) -> f64 {
    let power = 10_f64.powi(digits);
    (value * power).trunc() / power
}
