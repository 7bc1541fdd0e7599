// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.hub;

import dev.gantry.core.Location;
import dev.gantry.core.MisuseException;
import java.net.URI;
import java.net.URISyntaxException;
import java.net.URLDecoder;
import java.net.URLEncoder;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/// Names a repository of the hub, or a file or folder in it, as
/// `hf://[datasets/|spaces/]OWNER/NAME[@REVISION][/PATH]` does.
///
/// @param repository owner and name, such as `google-bert/bert-base-uncased`
/// @param revision a branch, a tag or a commit
/// @param path the file or folder, with `/` between its parts; empty for the whole repository
record HubName(Kind kind, String repository, String revision, String path) {
  /// The kinds of repositories, by the hub's names.
  enum Kind {
    MODEL("models", ""),
    DATASET("datasets", "datasets/"),
    SPACE("spaces", "spaces/");

    /// The word for this kind in the hub's API and in names of folders.
    final String plural;

    /// The part of an address before the repository's owner.
    final String prefix;

    Kind(String plural, String prefix) {
      this.plural = plural;
      this.prefix = prefix;
    }
  }

  static final String SCHEME = "hf";
  private static final String MAIN = "main";
  private static final String FORM = "hf://OWNER/NAME[@REVISION][/FILE]";
  private static final Pattern PART =
      Pattern.compile("[A-Za-z0-9_]([A-Za-z0-9_.-]{0,94}[A-Za-z0-9_])?");
  private static final Pattern COMMIT = Pattern.compile("[0-9a-f]{40}");

  /// The kinds of repositories that Python's library reads, but Gantry does not.
  private static final Set<String> UNREAD = Set.of("kernels", "buckets");

  /// Revisions with slashes that need no encoding: those of pull requests and conversions.
  private static final Pattern SPECIAL =
      Pattern.compile("(refs/(?:convert/[A-Za-z0-9_.-]+|pr/[0-9]+))(?:/(.*))?");

  /// Parses a location.
  ///
  /// @throws MisuseException if the location does not name anything on the hub; the message names
  ///     the form and the value
  static HubName of(Location location) {
    if (!(location instanceof Location.Remote(URI uri, _)) || uri.getRawAuthority() == null) {
      throw refusal(location, "must be " + FORM);
    }
    if (uri.getRawQuery() != null || uri.getRawFragment() != null) {
      throw refusal(
          location, "must be " + FORM + " without ? and # (in a name they are %3F and %23)");
    }
    List<String> parts =
        Stream.concat(
                Stream.of(uri.getRawAuthority()), Arrays.stream(uri.getRawPath().split("/", -1)))
            .filter(part -> !part.isEmpty())
            .toList();
    Optional<Kind> named =
        Stream.of(Kind.values()).filter(kind -> kind.plural.equals(parts.getFirst())).findFirst();
    if (UNREAD.contains(parts.getFirst())) {
      throw refusal(location, "must be of models, datasets or spaces");
    }
    List<String> rest = named.isPresent() ? parts.subList(1, parts.size()) : parts;
    if (rest.size() < 2) {
      throw refusal(location, "must name owner and repository: " + FORM);
    }
    String name = rest.get(1);
    int at = name.indexOf('@');
    String repository = rest.getFirst() + "/" + (at < 0 ? name : name.substring(0, at));
    String path = String.join("/", rest.subList(2, rest.size()));
    String revision = MAIN;
    if (at >= 0) {
      revision = name.substring(at + 1);
      Matcher special = SPECIAL.matcher(revision + (path.isEmpty() ? "" : "/" + path));
      if (special.matches()) {
        revision = special.group(1);
        path = special.group(2) == null ? "" : special.group(2);
      }
    }
    HubName read =
        new HubName(named.orElse(Kind.MODEL), repository, decoded(revision), decoded(path));
    read.check(location);
    return read;
  }

  /// Checks the parts that become parts of file names, so that the files lie within the cache's
  /// folder.
  private void check(Location location) {
    for (String part : repository.split("/", -1)) {
      if (!PART.matcher(part).matches() || part.contains("--") || part.contains("..")) {
        throw refusal(
            location,
            "must have an owner and a name of letters, digits, single - and ., and _: " + FORM);
      }
    }
    if (!isSafe(revision)) {
      throw refusal(location, "must have a revision after @, without .. in it");
    }
    if (!path.isEmpty() && !isSafe(path)) {
      throw refusal(location, "must have a path without . and .. in it");
    }
  }

  /// Whether a path leads below the folder in which it is resolved, by the rules of every
  /// operating system.
  static boolean isSafe(String path) {
    return !path.isEmpty()
        && path.indexOf('\\') < 0
        && path.indexOf('\0') < 0
        && Arrays.stream(path.split("/", -1))
            .noneMatch(part -> part.isEmpty() || part.equals(".") || part.equals(".."));
  }

  private static MisuseException refusal(Location location, String rule) {
    return new MisuseException("%s %s (was %s)".formatted("a name of the hub", rule, location));
  }

  private static String decoded(String text) {
    return URLDecoder.decode(text.replace("+", "%2B"), StandardCharsets.UTF_8);
  }

  private static String encoded(String text) {
    return URLEncoder.encode(text, StandardCharsets.UTF_8).replace("+", "%20");
  }

  private String encodedPath() {
    return Arrays.stream(path.split("/", -1))
        .map(HubName::encoded)
        .collect(Collectors.joining("/"));
  }

  /// Whether the revision is a commit, whose files never change.
  boolean isFixed() {
    return isCommit(revision);
  }

  static boolean isCommit(String text) {
    return COMMIT.matcher(text).matches();
  }

  /// Returns this name with its revision replaced by a commit.
  HubName at(String commit) {
    return new HubName(kind, repository, commit, path);
  }

  /// Returns the name of another file or folder of the same repository.
  HubName with(String other) {
    return new HubName(kind, repository, revision, other);
  }

  Location.Remote location() {
    try {
      String at = SPECIAL.matcher(revision).matches() ? revision : encoded(revision);
      String which = revision.equals(MAIN) ? "" : "@" + at;
      String end = path.isEmpty() ? "" : "/" + encodedPath();
      return new Location.Remote(new URI(SCHEME + "://" + kind.prefix + repository + which + end));
    } catch (URISyntaxException e) {
      throw new IllegalStateException("no URI of " + this, e);
    }
  }

  /// Returns the name of the repository's folder in the cache.
  String folder() {
    return kind.plural + "--" + repository.replace("/", "--");
  }

  /// Returns the path of the file's address, which follows the hub's address.
  String resolve() {
    return "/" + kind.prefix + repository + "/resolve/" + encoded(revision) + "/" + encodedPath();
  }

  /// Returns the API's path that tells which commit a revision is.
  String revisionApi() {
    return api("revision");
  }

  /// Returns the API's path that lists all files of a revision.
  String treeApi() {
    return api("tree") + "?recursive=true&expand=false";
  }

  private String api(String what) {
    return "/api/" + kind.plural + "/" + repository + "/" + what + "/" + encoded(revision);
  }

  @Override
  public String toString() {
    return location().toString();
  }
}
