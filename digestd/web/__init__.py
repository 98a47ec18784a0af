"""The built-in web server: pages without account, feeds, forms. Floor 5. Entry points: app.create_app, server.WebServer."""
