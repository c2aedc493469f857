from django.urls import path

from hitlchat.telemetry import views

urlpatterns = [path("metrics", views.metrics, name="metrics")]
