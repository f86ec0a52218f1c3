"""Metrics as a scraper reads them."""

import httpx
from prometheus_client.parser import text_string_to_metric_families


class Scrape:
    """Every sample of one answer of /metrics."""

    def __init__(self, text: str) -> None:
        self.families = {family.name: family for family in text_string_to_metric_families(text)}
        self._samples = [sample for family in self.families.values() for sample in family.samples]

    def sum(self, name: str, **labels: str) -> int:
        """Of all samples of this name that have these labels."""
        return int(
            sum(
                sample.value
                for sample in self._samples
                if sample.name == name and labels.items() <= sample.labels.items()
            )
        )

    def by(self, name: str, label: str, **labels: str) -> dict[str, int]:
        """Label's value -> sum, without those that are 0."""
        values = {s.labels[label] for s in self._samples if s.name == name and label in s.labels}
        sums = {value: self.sum(name, **labels, **{label: value}) for value in values}
        return {value: count for value, count in sums.items() if count}


def scrape(client: httpx.Client) -> Scrape:
    answer = client.get("/metrics")
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/plain; version=")
    return Scrape(answer.text)
