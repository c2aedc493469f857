from django.urls import path

from hitlchat.upstreams.gallery import views

urlpatterns = [
    path("gallery", views.gallery, name="gallery"),
]
