from django.urls import path

from hitlchat.approvals.history import views

urlpatterns = [
    path("", views.page, name="history"),
    path("changes", views.changed, name="history-changes"),
    path("export", views.export, name="history-export"),
    path("<uuid:call_id>", views.call, name="history-call"),
    path("<uuid:call_id>/attachments/<str:digest>", views.attachment, name="history-attachment"),
    path("<uuid:call_id>/settle", views.settle, name="history-settle"),
]
