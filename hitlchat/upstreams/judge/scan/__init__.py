"""Reading names, descriptions and schemas for what a model would obey and a person would not see."""

from hitlchat.upstreams.judge.scan.findings import Finding, Severity, blocks, trips
from hitlchat.upstreams.judge.scan.scanning import Known, scan, scan_text

__all__ = ["Finding", "Known", "Severity", "blocks", "scan", "scan_text", "trips"]
