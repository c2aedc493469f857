from django.urls import path

from hitlchat.record import views

app_name = "record"

urlpatterns = [
    path("", views.page, name="page"),
    path("verify", views.verify, name="verify"),
    path("check", views.check_file, name="check"),
    path("export", views.export, name="export"),
    path("receipt", views.receipt, name="receipt"),
]
