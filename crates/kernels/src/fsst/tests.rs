use super::decompress::SLACK_BYTES;
use super::*;

fn strings(rng: &mut fastrand::Rng, count: usize) -> Vec<Vec<u8>> {
    let words: Vec<Vec<u8>> =
        (0..rng.usize(1..40)).map(|_| (0..rng.usize(1..12)).map(|_| rng.u8(b'a'..=b'z')).collect()).collect();
    let noise = rng.u8(0..80);
    let word = |rng: &mut fastrand::Rng| match rng.u8(..) {
        n if n < noise => vec![rng.u8(..); rng.usize(1..3)],
        _ => words[rng.usize(..words.len())].clone(),
    };
    (0..count).map(|_| (0..rng.usize(0..12)).flat_map(|_| word(rng)).collect()).collect()
}

fn compressed(compressor: &Compressor, string: &[u8]) -> Vec<u8> {
    let mut codes = Vec::new();
    let text = [string, &[0xff; 8]].concat();
    compressor.compress(&text, 0, string.len(), &mut codes);
    codes
}

fn decompressed(decompressor: &Decompressor, codes: &[u8]) -> Vec<u8> {
    let bytes = decompressor.text_bytes(codes).unwrap();
    let mut text = vec![0; bytes + SLACK_BYTES];
    assert_eq!(decompressor.decompress(codes, &mut text), bytes);
    text.truncate(bytes);
    text
}

#[test]
fn strings_come_back_alone_and_together() {
    let mut rng = fastrand::Rng::with_seed(1);
    for round in 0..300 {
        let strings = strings(&mut rng, [0, 1, 5, 300][round % 4]);
        let sample: Vec<&[u8]> = strings.iter().step_by(2).map(Vec::as_slice).collect();
        let table = train(&sample);
        let bytes = table.to_bytes();
        assert_eq!(SymbolTable::from_bytes(&bytes, table.len()), Some((table.clone(), bytes.len())));
        let (compressor, decompressor) = (Compressor::new(&table), Decompressor::new(&table));
        let text = [strings.concat(), vec![0; 8]].concat();
        let (mut codes, mut from) = (Vec::new(), 0);
        for string in &strings {
            let before = codes.len();
            compressor.compress(&text, from, string.len(), &mut codes);
            from += string.len();
            assert_eq!(codes[before..], compressed(&compressor, string), "codes do not depend on what follows");
            assert_eq!(decompressed(&decompressor, &codes[before..]), *string);
        }
        assert_eq!(decompressed(&decompressor, &codes), strings.concat());
    }
}

#[test]
fn text_that_repeats_is_a_third() {
    let mut rng = fastrand::Rng::with_seed(2);
    let urls: Vec<String> = (0..2_000)
        .map(|_| {
            format!("https://www.example.com/shop/item?id={}&lang={}", rng.u32(..100_000), ["en", "de"][rng.usize(..2)])
        })
        .collect();
    let table = train(&urls.iter().take(300).map(String::as_bytes).collect::<Vec<_>>());
    let compressor = Compressor::new(&table);
    let codes: usize = urls.iter().map(|url| compressed(&compressor, url.as_bytes()).len()).sum();
    let text: usize = urls.iter().map(String::len).sum();
    assert!(codes * 3 < text, "{codes} of {text}");
}

#[test]
fn any_codes_end_inside_the_text() {
    let mut rng = fastrand::Rng::with_seed(3);
    for _ in 0..2_000 {
        let table = train(&[b"some text with words and some text with others".as_slice(); 20]);
        let decompressor = Decompressor::new(&table);
        let codes: Vec<u8> = (0..rng.usize(0..200)).map(|_| if rng.u8(..) < 30 { 255 } else { rng.u8(..) }).collect();
        let mut text = vec![0; rng.usize(0..400)];
        let room = text.len();
        assert!(decompressor.decompress(&codes, &mut text) <= room);
        let read = SymbolTable::from_bytes(&codes, codes.first().map_or(0, |n| usize::from(*n)));
        assert!(read.is_none_or(|(table, used)| used <= codes.len() && table.len() <= SYMBOLS_MAX));
    }
    let table = SymbolTable { symbols: vec![Symbol::new(b"ab")] };
    let decompressor = Decompressor::new(&table);
    assert_eq!(decompressor.text_bytes(&[0, 255, 7, 0]), Some(5));
    assert_eq!(decompressor.text_bytes(&[0, 1]), None, "a code without a symbol");
    assert_eq!(decompressor.text_bytes(&[0, 255]), None, "nothing behind an escape");
}
