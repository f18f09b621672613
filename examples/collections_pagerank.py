"""Rank pages by a dataflow of collections: 20 rounds of PageRank, kept up to date as links come and go."""

from collections import Counter

import halfjoin as hj

UNIT, ROUNDS = 1_000_000, 20  # ranks are whole millionths, so that adding and taking away is exact

engine = hj.Engine()
engine.execute("CREATE TABLE links (page bigint, target bigint)")
links = hj.collection("links").distinct()
pages = links.map("page").concat(links.map(page="target")).distinct()
degrees = links.reduce(by="page", links="count(*)")
roads = links.join(degrees, "page")


def step(ranks: hj.Collection) -> hj.Collection:
    """Each page gives 85 % of its rank to the pages that it links to, in equal parts, and each gets 15 % of a unit."""
    given = ranks.join(roads, "page", page="target", rank="this.rank * 85 / 100 / other.links")
    free = pages.map("page", rank=f"{UNIT * 15 // 100}::bigint")
    return given.concat(free).reduce(by="page", rank="sum(rank)::bigint")


engine.create_view("ranks", pages.map("page", rank=f"{UNIT}::bigint").iterate(step, rounds=ROUNDS))


def recomputed(links: set[tuple[int, int]]) -> dict[int, int]:
    """The same ranks, computed anew."""
    ranks = dict.fromkeys((page for link in links for page in link), UNIT)
    degrees = Counter(page for page, _ in links)
    for _ in range(ROUNDS):
        after = dict.fromkeys(ranks, UNIT * 15 // 100)
        for page, target in links:
            after[target] += ranks[page] * 85 // 100 // degrees[page]
        ranks = after
    return ranks


there = {(1, 2), (2, 3), (3, 1), (4, 3), (5, 3), (2, 5)}
engine.apply({"links": [{"page": page, "target": target} for page, target in there]}, time=1)
for time, gone, come in [(2, (2, 5), (1, 4)), (3, (4, 3), (4, 5)), (4, (3, 1), (3, 4))]:
    rows = [{"page": gone[0], "target": gone[1], "__diff": -1}, {"page": come[0], "target": come[1], "__diff": 1}]
    engine.apply({"links": rows}, time=time)
    there = there - {gone} | {come}
    ranks = {row["page"]: row["rank"] for row in engine.read("ranks").to_pylist()}
    print(f"at {time}:", ", ".join(f"page {page} {rank / UNIT:.2f}" for page, rank in sorted(ranks.items())))
    assert ranks == recomputed(there)
