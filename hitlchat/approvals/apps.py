from django.apps import AppConfig


class ApprovalsConfig(AppConfig):
    name = "hitlchat.approvals"
    label = "approvals"
