from django.urls import path

from hitlchat.chat import documents, pages, uses, views

urlpatterns = [
    path("", views.chat, name="chat"),
    path("find", pages.find, name="find"),
    path("docs/", documents.page, name="documents"),
    path("docs/<slug:document>", documents.page, name="document"),
    path("chat/new", views.new_conversation, name="new-conversation"),
    path("chat/next-steps/dismiss", views.dismiss_next_steps, name="dismiss-next-steps"),
    path("chat/threads", views.threads, name="threads"),
    path("chat/<uuid:conversation_id>/grants", views.grants, name="grants-meter"),
    path("chat/<uuid:conversation_id>/before/<int:before>", views.earlier, name="earlier"),
    path("chat/<uuid:conversation_id>/messages/<uuid:message_id>", views.message_text, name="message-text"),
    path("chat/<uuid:conversation_id>/change", views.change, name="change-conversation"),
    path("chat/<uuid:conversation_id>/delete", views.delete, name="delete-conversation"),
    path("chat/<uuid:conversation_id>/calls/<uuid:call_id>", views.show_call, name="show-call"),
    path("chat/<uuid:conversation_id>/share", views.share, name="share-conversation"),
    path("chat/<uuid:conversation_id>/uses", uses.uses, name="conversation-uses"),
    path("shared/<uuid:link>", views.shared, name="shared"),
    path("shared/<uuid:link>/before/<int:before>", views.shared_earlier, name="shared-earlier"),
    path("shared/<uuid:link>/attachments/<uuid:attachment_id>", views.shared_attachment, name="shared-attachment"),
    path("chat/<uuid:conversation_id>/restore", views.restore, name="restore-conversation"),
    path("chat/<uuid:conversation_id>", views.conversation, name="conversation"),
]
