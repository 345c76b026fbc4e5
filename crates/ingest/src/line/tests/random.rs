//! Compares the fast paths with the general path on random and mutated lines.

use super::*;

#[test]
fn prediction_changes_nothing_on_random_lines() {
    for seed in 0..300 {
        let mut dice = fastrand::Rng::with_seed(seed);
        let mut plain = LineParser::new(LineOptions { predict: false, ..options() });
        let mut quick = LineParser::new(LineOptions { seed, ..options() });
        for round in 0..4 {
            let text = random_lines(&mut dice);
            let cut = dice.usize(..=text.len());
            let chunks = [&text[..cut], &text[cut..]];
            assert_eq!(outcome(&mut quick, &chunks), outcome(&mut plain, &chunks), "seed {seed} round {round}");
            quick.reset();
            plain.reset();
        }
    }
}

#[test]
fn series_in_no_order_keep_their_tags_over_batches_and_undone_rows() {
    for seed in 0..40 {
        let mut dice = fastrand::Rng::with_seed(seed);
        let mut plain = LineParser::new(LineOptions { predict: false, ..options() });
        let mut quick = LineParser::new(LineOptions { seed, ..options() });
        for round in 0..5 {
            let mut text = String::new();
            for _ in 0..dice.usize(1..400) {
                let host = dice.usize(..50);
                // Tags of one word and of many words, with one sometimes missing.
                let rack = if host.is_multiple_of(7) { String::new() } else { format!(",rack=rack_{}", host % 3) };
                let place = "x".repeat(host * 3);
                let value = match dice.u16(..400) {
                    0 => "1z".to_owned(),
                    1..=8 => format!("1,new{}=2", dice.u8(..9)),
                    _ => dice.u8(..).to_string(),
                };
                text += &format!("cpu,host=host_{host}{rack},place=p{place} v={value} {}\n", dice.u32(..));
            }
            let (a, b) = (dice.usize(..=text.len()), dice.usize(..=text.len()));
            let (a, b) = (a.min(b), a.max(b));
            let chunks = [&text.as_bytes()[..a], &text.as_bytes()[a..b], &text.as_bytes()[b..]];
            assert_eq!(outcome(&mut quick, &chunks), outcome(&mut plain, &chunks), "seed {seed} round {round}");
            quick.reset();
            plain.reset();
        }
    }
}

/// The values of a batch do not depend on earlier batches, with kept dictionaries and with new ones.
#[test]
fn dictionaries_that_go_on_change_no_value() {
    let mut went_on = 0;
    for seed in 0..60 {
        let mut dice = fastrand::Rng::with_seed(seed);
        let mut parser = LineParser::new(LineOptions { seed, ..options() });
        let mut goes_on = false;
        for round in 0..12 {
            // Few or many symbols for the rows; also for a table that occurs sometimes, and a tag that is a field
            // elsewhere.
            let (rows, hosts) = (dice.usize(1..300), [3, 20, 200][dice.usize(..3)]);
            let mut text = String::new();
            for _ in 0..rows {
                let table = if dice.u8(..20) == 0 { "other" } else { "cpu" };
                let rack = if dice.bool() { format!(",rack=r{}", dice.u8(..3)) } else { String::new() };
                let field = if round % 5 == 4 { ",zone=\"z\"" } else { "" };
                let zone = if round % 5 == 3 { ",zone=z" } else { "" };
                text += &format!(
                    "{table},host=h{}{rack}{zone} v={}i{field} {}\n",
                    dice.usize(..hosts),
                    dice.u8(..),
                    dice.u32(..)
                );
            }
            let bad = dice.u8(..6) == 0;
            if bad {
                text += "cpu,host=never_seen,rack=nowhere v=1z\n";
            }
            assert_eq!(feed(&mut parser, &[text.as_bytes()]).is_err(), bad);
            let batches = parser.take();
            let mut fresh = LineParser::new(LineOptions { seed, ..options() });
            let _ = feed(&mut fresh, &[text.as_bytes()]);
            let expected = fresh.take();
            assert_eq!(show(&batches), show(&expected), "seed {seed} round {round}");
            let strings =
                |batches: &[Batch]| batches.iter().flat_map(|b| &b.columns).map(|c| c.dictionary.len()).sum::<usize>();
            went_on += usize::from(strings(&batches) > strings(&expected));
            assert!(strings(&batches) == strings(&expected) || goes_on, "they began anew");
            let may_go_on = |b: &Batch| b.columns.iter().all(|c| 2 * c.dictionary.len() <= b.rows);
            goes_on = batches.iter().all(may_go_on);
            let texts = |b: &Batch| b.columns.iter().any(|c| c.dictionary.iter().any(|text| text == b"never_seen"));
            assert!(!batches.iter().any(texts), "a string of a row that was refused");
            if bad || dice.u8(..8) == 0 {
                parser.reset();
                goes_on = false;
            }
        }
    }
    assert!(went_on > 60, "{went_on} batches had strings of others");
}

#[test]
fn nothing_of_a_request_is_in_the_dictionaries_of_the_next() {
    let mut parser = LineParser::new(options());
    let lines = |host: &str| format!("t,host={host} v=1i 1\n").repeat(10);
    for host in ["a", "b"] {
        parser.parse(lines(host).as_bytes(), NOW).expect("good lines");
        let batches = parser.take();
        assert!(batches[0].columns[0].dictionary.iter().eq([host.as_bytes()]), "{batches:?}");
        parser.reset();
    }
}

/// Rows of known series are buffered before they are added to their columns: with any lines between them, all rows are
/// kept in order.
#[test]
fn rows_that_wait_keep_their_place_beside_others() {
    for seed in 0..30 {
        let mut dice = fastrand::Rng::with_seed(seed);
        let mut plain = LineParser::new(LineOptions { predict: false, ..options() });
        let mut quick = LineParser::new(LineOptions { seed, ..options() });
        let odd_in = [30, 300, 3_000][seed as usize % 3];
        for round in 0..3 {
            let mut text = String::new();
            let mut host = 0;
            for _ in 0..dice.usize(1..3_000) {
                // In turn or in random order; long sequences of one table, or both tables.
                host = if seed % 2 == 0 { (host + 1) % 40 } else { dice.usize(..40) };
                let table = if dice.usize(..odd_in) == 0 || host % 20 == 19 { "mem" } else { "cpu" };
                let rack = if host % 10 == 9 { ",rack=r" } else { "" };
                let (a, b, time) = (dice.i16(..), dice.u8(..), dice.u32(..));
                let line = format!("{table},host=host_{host}{rack},zone=z{} a={a}i,b={b}", host % 3);
                text += &match if dice.usize(..odd_in) == 0 { dice.u8(..8) } else { 8 } {
                    0 => format!("{line},c={}i {time}", dice.u8(..)),
                    1 => format!("{line} {time}t"),
                    2 => line,
                    3 => format!("# nothing\n\n{line} {time}"),
                    4 => format!("{table},host=host_{host} b={b} {time}"),
                    5 => format!("{table} a={a}i,b={b} {time}"),
                    6 => format!("{line},a=x {time}"),
                    7 => format!("{table},new=n{host},host=host_{host},zone=z a={a}i {time}"),
                    _ => format!("{line} {time}"),
                };
                text.push('\n');
            }
            let cut = dice.usize(..=text.len());
            let chunks = [&text.as_bytes()[..cut], &text.as_bytes()[cut..]];
            assert_eq!(outcome(&mut quick, &chunks), outcome(&mut plain, &chunks), "seed {seed} round {round}");
            quick.reset();
            plain.reset();
        }
    }
}

/// Series with equal beginnings are each learned once and found again, including tags with spaces.
#[test]
fn series_that_begin_alike_are_told_apart() {
    for common in [0, 20, 100, 500, 2_500] {
        let mut dice = fastrand::Rng::with_seed(common as u64);
        let mut plain = LineParser::new(LineOptions { predict: false, ..options() });
        let mut quick = LineParser::new(LineOptions { seed: 5, ..options() });
        let alike = "y".repeat(common);
        for _ in 0..3 {
            let line = |host: u32| format!("cpu,place={alike}\\ {},host=h{host} v={host} {host}\n", host % 7);
            let text: String = (0..2_000).map(|_| line(dice.u32(..100))).collect();
            assert_eq!(outcome(&mut quick, &[text.as_bytes()]), outcome(&mut plain, &[text.as_bytes()]), "{common}");
            assert_eq!(quick.series.count(), 100, "{common} bytes alike");
            quick.reset();
            plain.reset();
        }
    }
}

#[test]
fn fields_of_one_shape_are_read_the_same_whatever_differs_now_and_then() {
    for seed in 0..60 {
        let mut dice = fastrand::Rng::with_seed(seed);
        let mut plain = LineParser::new(LineOptions { predict: false, ..options() });
        let mut quick = LineParser::new(LineOptions { seed, ..options() });
        // Integers and doubles, or only one of them: then mostly short ones, or binary ones.
        let all = [None, Some(true), Some(false)][seed as usize / 3 % 3];
        let fields: Vec<bool> = (0..dice.usize(1..12)).map(|_| all.unwrap_or_else(|| dice.bool())).collect();
        let odd_in = [40, 400, u32::MAX][dice.usize(..3)];
        for round in 0..4 {
            let mut text = Vec::new();
            for _ in 0..dice.usize(1..600) {
                let mut is_odd = || dice.u32(..odd_in) == 0;
                let (odd_tag, odd_end, odd_field) = (is_odd(), is_odd(), is_odd().then(|| dice.usize(..fields.len())));
                let tags = if odd_tag { ",other=x" } else { ["", ",host=a", ",host=b"][seed as usize % 3] };
                text.extend(format!("cpu{tags}").bytes());
                for (at, is_long) in fields.iter().enumerate() {
                    let mut name = format!("{}usage_{at}", if at == 0 { ' ' } else { ',' });
                    let is_usual = all.is_some() && dice.u8(..50) > 0;
                    let mut value = match is_long {
                        true if is_usual => format!("{}i", dice.u32(..) >> dice.u32(8..32)).into_bytes(),
                        false if is_usual => [b"=\x10".as_slice(), &dice.f64().to_le_bytes()].concat(),
                        true => format!("{}i", dice.i64(..) >> dice.u32(..64)).into_bytes(),
                        false if dice.u8(..3) == 0 => format!("{}", dice.u16(..)).into_bytes(),
                        false if dice.bool() => format!("{:.1}", dice.f64() * 100.0).into_bytes(),
                        false => [b"=\x10".as_slice(), &dice.f64().to_le_bytes()].concat(),
                    };
                    if odd_field == Some(at) {
                        match dice.u8(..10) {
                            0 => continue,
                            1 => value = b"NaN".to_vec(),
                            2 => value = b"t".to_vec(),
                            3 => value.push(b'x'),
                            4 => name = format!("{}usage_0", &name[..1]),
                            5 => value = b"12345678901234567890i".to_vec(),
                            6 => value = b"\"text\"".to_vec(),
                            7 => value = [b"=\x10".as_slice(), &f64::NAN.to_le_bytes()].concat(),
                            8 => value.extend(format!(",new{}=1i", dice.u8(..3)).bytes()),
                            _ => value.push(b' '),
                        }
                    }
                    text.extend(name.bytes());
                    text.extend(value);
                }
                match if odd_end { dice.u8(..5) } else { 9 } {
                    0 => text.push(b'\n'),
                    1 => text.extend(b" 17t\n"),
                    2 => text.extend(b" 17n\r\n"),
                    3 => text.extend(b", 9999999999999999999999\n"),
                    4 => text.extend(b" 1x\n"),
                    _ => text.extend(format!(" {}\n", dice.u32(..)).bytes()),
                }
            }
            let cut = dice.usize(..=text.len());
            let chunks = [&text[..cut], &text[cut..]];
            assert_eq!(outcome(&mut quick, &chunks), outcome(&mut plain, &chunks), "seed {seed} round {round}");
            quick.reset();
            plain.reset();
        }
    }
}

fn random_lines(dice: &mut fastrand::Rng) -> Vec<u8> {
    let shapes: Vec<Vec<(usize, usize)>> = (0..dice.usize(1..4))
        .map(|_| (0..dice.usize(1..9)).map(|_| (dice.usize(..9), dice.usize(..10))).collect())
        .collect();
    let mut text = String::new();
    for _ in 0..dice.usize(1..60) {
        let which = dice.usize(..shapes.len());
        text += ["cpu", "mem", "Mem", "a\\ b"][which.min(3)];
        let tags = dice.usize(..4);
        for tag in 0..tags {
            if dice.u8(..8) > 0 {
                text += &format!(
                    ",tag{tag}={}",
                    ["a", "some_host_17", "a\\ b", "something that is longer than sixteen".replace(' ', "_").as_str()]
                        [dice.usize(..4)]
                );
            }
        }
        let mut separator = ' ';
        for (name, kind) in &shapes[which] {
            if dice.u8(..10) == 0 {
                continue;
            }
            let kind = if dice.u16(..300) == 0 { dice.usize(..10) } else { *kind };
            text.push(separator);
            text += &format!("field_{name}={}", random_value(dice, kind));
            separator = ',';
        }
        if separator == ' ' {
            text += " z=1i";
        }
        text += &match dice.u8(..8) {
            0 => String::new(),
            1 => format!(" {}t", dice.i64(0..4_000_000_000_000_000)),
            2 => format!(" {}", dice.i64(..)),
            _ => format!(" {}", 1_451_606_400_000_000_000 + dice.i64(0..1_000)),
        };
        text += if dice.u8(..20) == 0 { "\r\n" } else { "\n" };
    }
    text.into_bytes()
}

fn random_value(dice: &mut fastrand::Rng, kind: usize) -> String {
    match kind {
        0 | 1 => format!("{}i", dice.i64(..) >> dice.u32(..64)),
        2 => format!("{}", dice.u32(..1000)),
        3 => format!("{:.*}", dice.usize(..20), dice.f64() * 1000.0 - 500.0),
        4 => format!("{:e}", f64::from_bits(dice.u64(..))),
        5 => ["t", "f", "true", "FALSE"][dice.usize(..4)].to_owned(),
        6 => format!("\"{}\"", ["", "short", "longer than twelve bytes", "with \\\" quote", "é, = "][dice.usize(..5)]),
        7 => format!(
            "{}{}",
            dice.i64(-1_000_000..1_451_606_400_000_000),
            ["t", "n", "m"][if dice.u8(..9) == 0 { dice.usize(..3) } else { 0 }]
        ),
        8 => format!("{}.{}d", dice.u32(..), dice.u32(..1000)),
        _ => String::new(),
    }
}

#[test]
fn mutated_input_never_panics_and_reads_the_same_without_prediction() {
    let sample = samples();
    for seed in 0..20_000 {
        let mut dice = fastrand::Rng::with_seed(seed);
        let mut text = sample.clone();
        for _ in 0..dice.usize(1..4) {
            let at = dice.usize(..text.len());
            match dice.u8(..5) {
                0 => text[at] = dice.u8(..),
                1 => text[at] = *dice.choice(b"\n\r ,=\\\"0i.t-#\x10\x0e\x17").expect("not empty"),
                2 => drop(text.drain(at..(at + dice.usize(1..9)).min(text.len()))),
                3 => text.insert(at, *dice.choice(b"\n\r ,=\\\"0i.t-#").expect("not empty")),
                _ => {
                    let from = dice.usize(..sample.len());
                    let piece = sample[from..(from + dice.usize(1..60)).min(sample.len())].to_vec();
                    text.splice(at..at, piece);
                }
            }
            if text.is_empty() {
                break;
            }
        }
        let cut = dice.usize(..=text.len());
        let chunks = [&text[..cut], &text[cut..]];
        let mut plain = LineParser::new(LineOptions { predict: false, ..options() });
        let mut quick = LineParser::new(options());
        // Learns the shapes first.
        quick.finish(&sample, NOW).expect("good lines");
        quick.reset();
        assert_eq!(outcome(&mut quick, &chunks), outcome(&mut plain, &chunks), "seed {seed}");
    }
}

#[test]
fn doubles_are_read_as_the_standard_library_reads_them() {
    let mut dice = fastrand::Rng::with_seed(7);
    for _ in 0..200_000 {
        let text = match dice.u8(..3) {
            0 => format!("{}.{:0width$}", dice.u32(..10_000), dice.u32(..1000), width = dice.usize(1..12)),
            1 => format!("-{}", dice.u64(..)),
            _ => format!("{}", dice.f64() * 10_f64.powi(dice.i32(-3..10))),
        };
        let input = format!("{text},                        ");
        if let Some((value, end)) = scan::double(input.as_bytes(), 0) {
            assert_eq!(
                (value.to_bits(), end),
                (text.parse::<f64>().expect("a number").to_bits(), text.len()),
                "{text}"
            );
        }
    }
}
