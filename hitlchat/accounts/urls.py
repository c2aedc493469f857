from django.contrib.auth.views import LoginView, LogoutView
from django.urls import path

from hitlchat.accounts import signing_in_again, views

urlpatterns = [
    path("welcome/<str:secret>", views.welcome, name="welcome"),
    path(
        "sign-in",
        LoginView.as_view(template_name="accounts/sign_in.html", redirect_authenticated_user=True),
        name="sign-in",
    ),
    path("sign-in/again", signing_in_again.again, name="sign-in-again"),
    path("sign-out", LogoutView.as_view(), name="sign-out"),
]
