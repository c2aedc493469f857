from django.urls import path

from hitlchat.project_tools import views

urlpatterns = [
    path("", views.functions, name="project-tools"),
    path("<str:name>", views.function, name="project-tool"),
]
