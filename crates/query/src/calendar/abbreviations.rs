//! Abbreviations of time zones, with the offsets that PostgreSQL 15 gives them by default.

/// Minutes east of Greenwich by abbreviation, sorted. `IST` is Israel, `BST` British summer time.
const OFFSETS: &[(&str, i16)] = &[
    ("ACDT", 630), ("ACSST", 630), ("ACST", 570), ("ACT", -300), ("ACWST", 525), ("ADT", -180), ("AEDT", 660),
    ("AESST", 660), ("AEST", 600), ("AFT", 270), ("AKDT", -480), ("AKST", -540), ("ALMST", 420), ("ALMT", 360),
    ("AMST", 240), ("AMT", -240), ("ANAST", 720), ("ANAT", 720), ("ARST", -180), ("ART", -180), ("AST", -240),
    ("AWSST", 540), ("AWST", 480), ("AZOST", 0), ("AZOT", -60), ("AZST", 240), ("AZT", 240), ("BDST", 120),
    ("BDT", 360), ("BNT", 480), ("BORT", 480), ("BOT", -240), ("BRA", -180), ("BRST", -120), ("BRT", -180),
    ("BST", 60), ("BTT", 360), ("CADT", 630), ("CAST", 570), ("CCT", 480), ("CDT", -300), ("CEST", 120), ("CET", 60),
    ("CETDST", 120), ("CHADT", 825), ("CHAST", 765), ("CHUT", 600), ("CKT", -600), ("CLST", -180), ("CLT", -180),
    ("COT", -300), ("CST", -360), ("CXT", 420), ("DAVT", 420), ("DDUT", 600), ("EASST", -300), ("EAST", -300),
    ("EAT", 180), ("EDT", -240), ("EEST", 180), ("EET", 120), ("EETDST", 180), ("EGST", 0), ("EGT", -60),
    ("EST", -300), ("FET", 180), ("FJST", 780), ("FJT", 720), ("FKST", -180), ("FKT", -180), ("FNST", -60),
    ("FNT", -120), ("GALT", -360), ("GAMT", -540), ("GEST", 240), ("GET", 240), ("GFT", -180), ("GILT", 720),
    ("GMT", 0), ("GYT", -240), ("HKT", 480), ("HST", -600), ("ICT", 420), ("IDT", 180), ("IOT", 360), ("IRKST", 480),
    ("IRKT", 480), ("IRT", 210), ("IST", 120), ("JAYT", 540), ("JST", 540), ("KDT", 600), ("KGST", 360), ("KGT", 360),
    ("KOST", 660), ("KRAST", 420), ("KRAT", 420), ("KST", 540), ("LHDT", 660), ("LHST", 630), ("LIGT", 600),
    ("LINT", 840), ("LKT", 330), ("MAGST", 660), ("MAGT", 660), ("MART", -570), ("MAWT", 300), ("MDT", -360),
    ("MEST", 120), ("MESZ", 120), ("MET", 60), ("METDST", 120), ("MEZ", 60), ("MHT", 720), ("MMT", 390), ("MPT", 600),
    ("MSD", 240), ("MSK", 180), ("MST", -420), ("MUST", 300), ("MUT", 240), ("MVT", 300), ("MYT", 480), ("NDT", -150),
    ("NFT", -210), ("NOVST", 420), ("NOVT", 420), ("NPT", 345), ("NST", -210), ("NUT", -660), ("NZDT", 780),
    ("NZST", 720), ("NZT", 720), ("OMSST", 360), ("OMST", 360), ("PDT", -420), ("PET", -300), ("PETST", 720),
    ("PETT", 720), ("PGT", 600), ("PHT", 480), ("PKST", 360), ("PKT", 300), ("PMDT", -120), ("PMST", -180),
    ("PONT", 660), ("PST", -480), ("PWT", 540), ("PYST", -180), ("PYT", -180), ("RET", 240), ("SADT", 630),
    ("SAST", 120), ("SCT", 240), ("SGT", 480), ("TAHT", -600), ("TFT", 300), ("TJT", 300), ("TKT", 780), ("TMT", 300),
    ("TOT", 780), ("TRUT", 600), ("TVT", 720), ("UCT", 0), ("ULAST", 540), ("ULAT", 480), ("UT", 0), ("UTC", 0),
    ("UYST", -120), ("UYT", -180), ("UZST", 360), ("UZT", 300), ("VET", -240), ("VLAST", 600), ("VLAT", 600),
    ("VOLT", 180), ("VUT", 660), ("WADT", 480), ("WAKT", 720), ("WAST", 420), ("WAT", 60), ("WDT", 540), ("WET", 0),
    ("WETDST", 60), ("WFT", 720), ("WGST", -120), ("WGT", -180), ("XJT", 360), ("YAKST", 540), ("YAKT", 540),
    ("YAPT", 600), ("YEKST", 360), ("YEKT", 300), ("Z", 0), ("ZULU", 0),
];

/// Seconds east of Greenwich of an abbreviation in any case.
pub(super) fn offset_seconds(text: &str) -> Option<i64> {
    let name = text.to_ascii_uppercase();
    let at = OFFSETS.binary_search_by(|(own, _)| (*own).cmp(name.as_str())).ok()?;
    Some(i64::from(OFFSETS[at].1) * 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn abbreviations_are_found_in_a_sorted_list() {
        assert!(OFFSETS.is_sorted());
        assert_eq!([offset_seconds("cest"), offset_seconds("EST"), offset_seconds("XYZ")], [Some(7_200), Some(-18_000), None]);
    }
}
