from django.contrib.auth.views import LoginView, LogoutView
from django.urls import path

from hitlchat.accounts import preferences, sign_in

urlpatterns = [
    path("welcome/<str:secret>", sign_in.welcome, name="welcome"),
    path(
        "sign-in",
        LoginView.as_view(template_name="accounts/sign_in.html", redirect_authenticated_user=True),
        name="sign-in",
    ),
    path("sign-in/again", sign_in.again, name="sign-in-again"),
    path("theme", preferences.choose, {"what": "theme"}, name="choose-theme"),
    path("language", preferences.choose, {"what": "language"}, name="choose-language"),
    path("sign-out", LogoutView.as_view(), name="sign-out"),
]
