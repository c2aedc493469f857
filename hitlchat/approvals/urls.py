from django.urls import path

from hitlchat.approvals import views

urlpatterns = [
    path("approvals/<uuid:approval_id>", views.approval, name="approval"),
    path("approvals/<uuid:approval_id>/decide", views.answer, name="decide"),
    path("approvals/<uuid:approval_id>/outcome", views.outcome, name="outcome"),
]
