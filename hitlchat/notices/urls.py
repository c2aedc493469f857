from django.urls import path

from hitlchat.notices import views, webhook_views

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
    path("webhooks/new", webhook_views.new, name="new-webhook"),
    path("webhooks/<uuid:receiver_id>/test", webhook_views.test, name="test-webhook"),
    path("webhooks/<uuid:receiver_id>/switch", webhook_views.switch, name="switch-webhook"),
    path("webhooks/<uuid:receiver_id>/key", webhook_views.key, name="new-key"),
    path("webhooks/<uuid:receiver_id>/remove", webhook_views.remove, name="remove-webhook"),
]
