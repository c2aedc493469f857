from django.apps import AppConfig


class PeopleConfig(AppConfig):
    name = "hitlchat.people"
    label = "people"
