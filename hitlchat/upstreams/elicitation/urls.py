from django.urls import path

from hitlchat.upstreams.elicitation import views

urlpatterns = [
    path("questions/", views.listed, name="questions"),
    path("questions/waiting", views.waiting, name="questions-waiting"),
    path("questions/<uuid:question_id>", views.question, name="question"),
    path("questions/<uuid:question_id>/answer", views.answer, name="answer-question"),
    path("questions/<uuid:question_id>/decline", views.decline, name="decline-question"),
]
