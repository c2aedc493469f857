from django.contrib.auth.views import LoginView, LogoutView
from django.urls import path

from hitlchat.accounts import sign_in, views

urlpatterns = [
    path("welcome/<str:secret>", views.welcome, name="welcome"),
    path(
        "sign-in",
        LoginView.as_view(template_name="accounts/sign_in.html", redirect_authenticated_user=True),
        name="sign-in",
    ),
    path("sign-in/again", sign_in.again, name="sign-in-again"),
    path("theme", views.choose_theme, name="choose-theme"),
    path("sign-out", LogoutView.as_view(), name="sign-out"),
]
