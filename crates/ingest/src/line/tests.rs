use super::*;
#[test]
fn smoke() {
    let mut parser = LineParser::new(LineOptions::default());
    let text =
        b"cpu,host=a,region=eu a=1i,b=2.5 1451606400000000000\ncpu,host=b,region=eu a=1i,b=2.5 1451606400000000000\n";
    assert_eq!(parser.parse(text, 0), Ok(text.len()));
    println!("{:?}", parser.take());
}
