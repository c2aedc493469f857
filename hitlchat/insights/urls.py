from django.urls import path

from hitlchat.insights import views

urlpatterns = [path("", views.page, name="insights")]
