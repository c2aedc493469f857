from django.apps import AppConfig


class AccountsConfig(AppConfig):
    name = "hitlchat.accounts"
    label = "accounts"
