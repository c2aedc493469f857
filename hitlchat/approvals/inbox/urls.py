from django.urls import path

from hitlchat.approvals.inbox import views

urlpatterns = [
    path("approvals/", views.page, name="approvals"),
    path("approvals/waiting", views.live, name="approvals-live"),
    path("approvals/decided", views.decided, name="approvals-decided"),
    path("approvals/together", views.together, name="approvals-together"),
    path("waiting", views.count, name="waiting-count"),
]
