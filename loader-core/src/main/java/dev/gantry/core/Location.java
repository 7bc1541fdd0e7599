// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core;

import java.net.URI;
import java.net.URISyntaxException;
import java.nio.charset.StandardCharsets;
import java.nio.file.FileSystems;
import java.nio.file.InvalidPathException;
import java.nio.file.Path;
import java.util.Locale;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/// Names a file: by its path on this machine, or by its URI in another store. Immutable.
public sealed interface Location {
  /// A file on this machine. The empty path is the current folder, as it is to the JDK.
  static Location of(Path file) {
    return new Local(file);
  }

  /// Parses a location. Text that begins with a scheme and `://`, such as
  /// `https://host/folder/model.safetensors`, names a file of the store that serves the scheme;
  /// `file:/` and all other text is a path on this machine.
  ///
  /// @throws MisuseException if the text is neither a path nor a URI, or begins like a URI that lacks a
  ///     slash, as `s3:/bucket/key` does; `./s3:/bucket/key` is a path
  static Location of(String text) {
    MisuseException.requireGiven("location", text);
    if (text.isEmpty()) {
      throw new MisuseException("location must be a path or a URI (was empty)");
    }
    try {
      Matcher start = Remote.SCHEME.matcher(text);
      if (!start.lookingAt()) {
        return of(Local.resolve(Path.of(""), text));
      }
      URI uri = new URI(text);
      if (uri.getScheme().equalsIgnoreCase("file")) {
        if (uri.getRawAuthority() != null) {
          throw new MisuseException(
              "location must name no host after file: (was "
                  + text
                  + "); file:///folder/file is a path of this machine");
        }
        return of(Path.of(uri));
      }
      if (!start.group().endsWith("//")) {
        throw new MisuseException(
            "location must have two slashes after its scheme (was "
                + text
                + "); a path of this name begins with ./");
      }
      return new Remote(uri);
    } catch (URISyntaxException e) {
      throw new MisuseException(
          "location must be a path or a URI: "
              + e.getReason()
              + " at index "
              + e.getIndex()
              + ": "
              + withoutSecrets(text));
    } catch (IllegalArgumentException e) {
      throw new MisuseException("location must be a path or a URI: " + e.getMessage());
    }
  }

  /// Removes user name, password and query. The text is not parsed, because `java.net.URI` finds no
  /// user name before a bucket or host whose name has an underscore.
  private static String withoutSecrets(String uri) {
    return uri.replaceFirst("(?s)[?#].*", "").replaceFirst("//[^/]*@", "//");
  }

  /// The last part of the path or URI, such as `model.safetensors`; empty if it has none.
  String fileName();

  /// Returns the location of another file in this file's folder.
  ///
  /// @param name a file name; the caller has already refused separators and `..`
  Location sibling(String name);

  /// Returns the path of a local file.
  ///
  /// @throws MisuseException if another store holds the file
  Path path();

  /// The identity that the file must have when it is opened, so that its header and its data are of one version; null
  /// if any version will do.
  @Nullable Object version();

  /// Returns the location of this file in one version only: a file with another identity is not
  /// opened.
  ///
  /// @param identity the file's identity, as the store gave it when it opened the file
  Location at(Object identity);

  /// A file on this machine. Two local locations are equal if their paths are equal, whatever
  /// their versions.
  record Local(Path path, @Nullable Object version) implements Location {
    public Local {
      MisuseException.requireGiven("path", path);
      path = path.toString().isEmpty() ? path.resolve(".") : path;
    }

    /// Names the file in the version that it has when it is opened.
    public Local(Path path) {
      this(path, null);
    }

    @Override
    public Local at(Object identity) {
      return new Local(path, identity);
    }

    @Override
    public boolean equals(@Nullable Object other) {
      return other instanceof Local that && path.equals(that.path);
    }

    @Override
    public int hashCode() {
      return path.hashCode();
    }

    @Override
    public String fileName() {
      Path name = path.getFileName();
      return name == null ? "" : name.toString();
    }

    @Override
    public Location sibling(String name) {
      Path folder = path.getParent();
      return new Local(resolve(folder == null ? Path.of("") : folder, name));
    }

    /// Resolves as [Path#resolve(String)] does, but also takes names with characters that the locale's encoding lacks
    /// (`LC_ALL=C` has ASCII only). It encodes those names in UTF-8, as nearly every Linux does.
    private static Path resolve(Path folder, String name) {
      try {
        return folder.resolve(name);
      } catch (InvalidPathException e) {
        if (name.indexOf('\0') >= 0 || !folder.getFileSystem().equals(FileSystems.getDefault())) {
          throw e;
        }
        Path base = name.startsWith("/") ? Path.of("/") : folder;
        StringBuilder uri = new StringBuilder(base.toUri().toString());
        if (uri.charAt(uri.length() - 1) != '/') {
          uri.append('/');
        }
        for (byte each : name.getBytes(StandardCharsets.UTF_8)) {
          uri.append(each == '/' ? "/" : String.format(Locale.ROOT, "%%%02X", each));
        }
        return Path.of(URI.create(uri.toString()));
      }
    }

    @Override
    public String toString() {
      return path.toString();
    }
  }

  /// A file of another store.
  ///
  /// @param uri the file's URI, which has a scheme, such as `https`
  record Remote(URI uri, @Nullable Object version) implements Location {
    private static final Pattern SCHEME = Pattern.compile("[A-Za-z][A-Za-z0-9+.-]+://?");

    public Remote {
      if (MisuseException.requireGiven("uri", uri).getScheme() == null) {
        throw new MisuseException("location " + uri + " has no scheme, such as https");
      }
    }

    /// Names the file in the version that it has when it is opened.
    public Remote(URI uri) {
      this(uri, null);
    }

    @Override
    public Remote at(Object identity) {
      return new Remote(uri, identity);
    }

    /// The URI's scheme in lower case, which tells which store serves this file.
    public String scheme() {
      return uri.getScheme().toLowerCase(Locale.ROOT);
    }

    @Override
    public String fileName() {
      String path = uri.getPath();
      return path == null ? "" : path.substring(path.lastIndexOf('/') + 1);
    }

    /// Keeps the query of the URI, since the query may hold the credentials for the whole folder.
    @Override
    public Location sibling(String name) {
      try {
        String query = uri.getRawQuery();
        String encoded = new URI(null, null, "/" + name, null).getRawPath().substring(1);
        return new Remote(uri.resolve("./" + encoded + (query == null ? "" : "?" + query)));
      } catch (URISyntaxException e) {
        throw new MisuseException("no file name: " + name + ": " + e.getMessage());
      }
    }

    @Override
    public Path path() {
      throw new MisuseException(this + " must be a local file for this call");
    }

    /// Returns the URI without user name, password and query, which may be secrets.
    @Override
    public String toString() {
      return withoutSecrets(uri.toString());
    }
  }
}
