from django.urls import path

from hitlchat.notices import views

app_name = "notices"
urlpatterns = [
    path("", views.page, name="page"),
    path("log", views.log, name="log"),
    path("email", views.email, name="email"),
    path("email/confirm", views.confirm, name="confirm"),
    path("email/off", views.email_off, name="email-off"),
    path("email/test", views.email_test, name="email-test"),
    path("wishes", views.wishes, name="wishes"),
    path("arguments", views.arguments, name="arguments"),
    path("webhooks/new", views.new, name="new-webhook"),
    path("webhooks/<uuid:receiver_id>/test", views.test, name="test-webhook"),
    path("webhooks/<uuid:receiver_id>/switch", views.switch, name="switch-webhook"),
    path("webhooks/<uuid:receiver_id>/key", views.key, name="new-key"),
    path("webhooks/<uuid:receiver_id>/remove", views.remove, name="remove-webhook"),
]
