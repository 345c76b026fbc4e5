"""Hits of a web site, made up: the 105 columns of ClickBench's table, with distributions like those published of it.

Of the rows 17 % have a UserID of their own, 18 % a URL, 9 % a title; 13 % have a search phrase, 0.6 % an advertisement,
5.5 % a phone; a counter in 133 rows is 62. Rows come in order of time. The same for the same number of rows.
"""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

LONGS = "WatchID UserID FUniqID ParamPrice RefererHash URLHash".split()
INTS = ("CounterID ClientIP RegionID RefererRegionID URLRegionID IPNetworkID SilverlightVersion3 CodeVersion HID RemoteIP WindowName OpenerName "
        "SendTiming DNSTiming ConnectTiming ResponseStartTiming ResponseEndTiming FetchTiming CLID").split()
TIMES = "EventTime ClientEventTime LocalEventTime".split()
TEXTS = ("Title URL Referer FlashMinor2 UserAgentMinor MobilePhoneModel Params SearchPhrase PageCharset OriginalURL HitColor BrowserLanguage "
         "BrowserCountry SocialNetwork SocialAction SocialSourcePage ParamOrderID ParamCurrency OpenstatServiceName OpenstatCampaignID OpenstatAdID "
         "OpenstatSourceID UTMSource UTMMedium UTMCampaign UTMContent UTMTerm FromTag").split()
ORDER = """WatchID JavaEnable Title GoodEvent EventTime EventDate CounterID ClientIP RegionID UserID CounterClass OS UserAgent URL Referer IsRefresh
RefererCategoryID RefererRegionID URLCategoryID URLRegionID ResolutionWidth ResolutionHeight ResolutionDepth FlashMajor FlashMinor FlashMinor2 NetMajor
NetMinor UserAgentMajor UserAgentMinor CookieEnable JavascriptEnable IsMobile MobilePhone MobilePhoneModel Params IPNetworkID TraficSourceID
SearchEngineID SearchPhrase AdvEngineID IsArtifical WindowClientWidth WindowClientHeight ClientTimeZone ClientEventTime SilverlightVersion1
SilverlightVersion2 SilverlightVersion3 SilverlightVersion4 PageCharset CodeVersion IsLink IsDownload IsNotBounce FUniqID OriginalURL HID
IsOldCounter IsEvent IsParameter DontCountHits WithHash HitColor LocalEventTime Age Sex Income Interests Robotness RemoteIP WindowName OpenerName
HistoryLength BrowserLanguage BrowserCountry SocialNetwork SocialAction HTTPError SendTiming DNSTiming ConnectTiming ResponseStartTiming
ResponseEndTiming FetchTiming SocialSourceNetworkID SocialSourcePage ParamPrice ParamOrderID ParamCurrency ParamCurrencyID OpenstatServiceName
OpenstatCampaignID OpenstatAdID OpenstatSourceID UTMSource UTMMedium UTMCampaign UTMContent UTMTerm FromTag HasGCLID RefererHash URLHash CLID""".split()
# Of text columns that are mostly empty: how many rows have one, and of how many.
RARE = dict(Params=(.01, 500), SocialNetwork=(.005, 30), SocialAction=(.005, 5), SocialSourcePage=(.01, 20000), ParamOrderID=(.001, 9000),
            ParamCurrency=(.001, 4), OpenstatServiceName=(.02, 20), OpenstatCampaignID=(.02, 9000), OpenstatAdID=(.02, 20000), OpenstatSourceID=(.02, 900),
            UTMSource=(.04, 300), UTMMedium=(.04, 50), UTMCampaign=(.04, 3000), UTMContent=(.02, 9000), UTMTerm=(.01, 9000), FromTag=(.02, 400))
SMALL = dict(FlashMinor2=60, UserAgentMinor=40, PageCharset=4, HitColor=8, BrowserLanguage=5, BrowserCountry=6)
ROWS_AT_ONCE = 500_000


def kind(name):
    if name in LONGS:
        return pa.int64()
    if name in INTS:
        return pa.int32()
    if name in TIMES:
        return pa.timestamp("us")
    return pa.date32() if name == "EventDate" else pa.string() if name in TEXTS else pa.int16()


def skewed(chance, rows, values):
    """The k-th value is about 1/k as frequent as the first."""
    return np.minimum((float(values) ** chance.random(rows)).astype(np.int64), values) - 1


def hashed(values, factor=0x9E3779B97F4A7C15):
    return (values.astype(np.uint64) * np.uint64(factor)).view(np.int64)


def words(prefix, numbers, empty=None):
    texts = [f"{prefix}{n}" for n in numbers.tolist()]
    if empty is not None:
        texts = [("" if is_empty else text) for text, is_empty in zip(texts, empty.tolist())]
    return pa.array(texts)


def write(path, rows, seed=62):
    assert len(ORDER) == 105
    chance = np.random.default_rng(seed)
    schema = pa.schema([(name, kind(name)) for name in ORDER])
    users = hashed(np.arange(1, max(10, rows * 17 // 100)))
    users[7] = 435090932899640449
    begin = int(np.datetime64("2013-07-01T00:00:00", "s").astype("int64"))
    with pq.ParquetWriter(path, schema, compression="snappy") as writer:
        for first in range(0, rows, ROWS_AT_ONCE):
            count = min(ROWS_AT_ONCE, rows - first)
            writer.write_table(pa.table(part(chance, first, count, rows, users, begin), schema=schema), row_group_size=count)


def part(chance, first, count, rows, users, begin):
    mixed = lambda share, values: np.where(chance.random(count) < .5, skewed(chance, count, values), chance.integers(0, max(2, int(rows * share)), count))  # noqa: E731
    user = np.where(chance.random(count) < .05, skewed(chance, count, min(2000, len(users))), chance.integers(0, len(users), count))
    second = begin + (np.arange(first, first + count) * (31 * 86400)) // rows
    url, title, referer = mixed(.2, 1 << 20), mixed(.11, 1 << 19), mixed(.22, 1 << 20)
    phrase, has_phrase = mixed(.1, 1 << 18), chance.random(count) < .13
    is_phone, google = user % 1000 < 55, chance.random(count) < .00016
    counter = np.where(chance.random(count) < .0075, 62, 1000 + skewed(chance, count, 6500) * 7)
    values = {
        "WatchID": hashed(np.arange(first, first + count), 0xD6E8FEB86659FD93), "UserID": users[user], "CounterID": counter,
        "EventTime": second * 1_000_000, "ClientEventTime": (second + chance.integers(-3600, 3600, count)) * 1_000_000, "LocalEventTime": (second + 14_400) * 1_000_000,
        "EventDate": (second // 86400).astype(np.int32), "RegionID": user * 7919 % 9040, "ClientIP": (hashed(user) >> 33), "RemoteIP": (hashed(user) >> 33),
        "AdvEngineID": np.where(chance.random(count) < .0063, 1 + skewed(chance, count, 60), 0), "ResolutionWidth": np.array([0, 1024, 1280, 1366, 1440, 1600, 1680, 1920, 2560])[user % 9],
        "MobilePhone": np.where(is_phone, 1 + user % 45, 0), "IsMobile": is_phone, "SearchEngineID": np.where(has_phrase, 1 + skewed(chance, count, 95), 0),
        "TraficSourceID": np.where(has_phrase, 2, chance.integers(-1, 8, count)), "IsRefresh": chance.random(count) < .13, "DontCountHits": chance.random(count) < .09,
        "RefererHash": np.where((counter == 62) & (chance.random(count) < .02), 3594120000172545465, hashed(referer)),
        "URLHash": np.where((counter == 62) & (chance.random(count) < .005), 2868770270353813622, hashed(url)), "FUniqID": users[user] ^ 0x5DEECE66D,
        "HID": chance.integers(0, 1 << 30, count), "WindowClientWidth": chance.integers(0, 2000, count), "WindowClientHeight": chance.integers(0, 1200, count),
        "IsLink": chance.random(count) < .05, "IsDownload": chance.random(count) < .005,
        "URL": pa.array([f"http://{'google.com' if g else f'site{u % 20011}.ru'}/{u}/page.html?id={u * 31}" for u, g in zip(url.tolist(), google.tolist())]),
        "Title": pa.array([f"заголовок {t}" + (" - Google" if t % 3000 == 7 else "") for t in title.tolist()]),
        "Referer": words("https://www.ref.net/text/", referer, chance.random(count) < .19), "SearchPhrase": words("поиск ", phrase, ~has_phrase),
        "OriginalURL": words("http://orig.ru/", url, chance.random(count) < .88), "MobilePhoneModel": words("iPad", user % 166, ~is_phone),
    }
    for name, (share, different) in RARE.items():
        values[name] = words(name.lower(), skewed(chance, count, different), chance.random(count) >= share)
    for name, different in SMALL.items():
        values[name] = words("", user % different)
    for i, name in enumerate(ORDER):
        if name not in values:
            values[name] = np.where(chance.random(count) < .3 + i % 5 / 10, 0, skewed(chance, count, 20 + 37 * (i % 9)))
    numpy_kinds = {"int64": np.int64, "int32": np.int32, "int16": np.int16}
    plain = lambda name, v: v.astype(numpy_kinds[str(kind(name))]) if str(kind(name)) in numpy_kinds else v  # noqa: E731
    return [v if isinstance(v, pa.Array) else pa.array(plain(name, np.asarray(v)), kind(name)) for name, v in ((name, values[name]) for name in ORDER)]
