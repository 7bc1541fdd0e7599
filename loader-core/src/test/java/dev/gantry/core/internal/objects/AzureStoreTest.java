// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.objects;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.sun.net.httpserver.HttpExchange;
import dev.gantry.core.CachePolicy;
import dev.gantry.core.Location;
import dev.gantry.core.MisuseException;
import dev.gantry.core.spi.Store;
import dev.gantry.core.spi.StoredFile;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.util.Base64;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.stream.Collectors;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;

class AzureStoreTest extends ObjectStoreContract {
  private static final String ACCOUNT = "account";
  private static final String KEY = "c2VjcmV0IGtleSBvZiAzMiBieXRlcyBmb3IgdGVzdHMh";
  private static final String SAS = "sv=2021-12-02&sr=c&sp=rl&sig=a%2Bb%2Fc%3D";

  AzureStoreTest() {
    super("az");
  }

  @Override
  Map<String, String> settings() {
    return Map.of(
        "AZURE_STORAGE_ACCOUNT", ACCOUNT,
        "AZURE_STORAGE_KEY", KEY,
        "AZURE_STORAGE_SERVICE_ENDPOINT", endpoint());
  }

  @Override
  String endpoint() {
    return super.endpoint() + "/" + ACCOUNT;
  }

  @Override
  Store make(Map<String, String> settings) {
    return new AzureStore(settings::get);
  }

  @Override
  String root() {
    return ACCOUNT + "/" + BUCKET;
  }

  @Override
  String from() {
    return "marker";
  }

  private static String header(HttpExchange exchange, String name) {
    return Objects.requireNonNullElse(exchange.getRequestHeaders().getFirst(name), "");
  }

  /// Computes the signature as Azure's page about shared keys describes it, independently of the
  /// client.
  @Override
  boolean isAllowed(HttpExchange exchange) {
    if (!query(exchange).getOrDefault("sig", "").isEmpty()) {
      return query(exchange).get("sig").equals("a+b/c=");
    }
    String lines =
        List.of(
                "Content-Encoding",
                "Content-Language",
                "Content-Length",
                "Content-MD5",
                "Content-Type",
                "Date",
                "If-Modified-Since",
                "If-Match",
                "If-None-Match",
                "If-Unmodified-Since",
                "Range")
            .stream()
            .map(name -> header(exchange, name))
            // The text to sign has an empty string for a length of 0.
            .map(value -> (value.equals("0") ? "" : value) + "\n")
            .collect(Collectors.joining());
    String text =
        exchange.getRequestMethod()
            + "\n"
            + lines
            + "x-ms-date:"
            + header(exchange, "x-ms-date")
            + "\nx-ms-version:"
            + header(exchange, "x-ms-version")
            + "\n/"
            + ACCOUNT
            + exchange.getRequestURI().getRawPath()
            + query(exchange).entrySet().stream()
                .sorted(Map.Entry.comparingByKey())
                .map(one -> "\n" + one.getKey() + ":" + one.getValue())
                .collect(Collectors.joining());
    try {
      Mac mac = Mac.getInstance("HmacSHA256");
      mac.init(new SecretKeySpec(Base64.getDecoder().decode(KEY), "HmacSHA256"));
      byte[] signature = mac.doFinal(text.getBytes(StandardCharsets.UTF_8));
      return header(exchange, "Authorization")
          .equals("SharedKey account:" + Base64.getEncoder().encodeToString(signature));
    } catch (GeneralSecurityException e) {
      throw new IllegalStateException(e);
    }
  }

  @Override
  String listing(List<String> keys, @Nullable String next) {
    return """
    \uFEFF<?xml version="1.0" encoding="utf-8"?><EnumerationResults ContainerName="a-bucket">
    <Prefix>a folder/</Prefix><Blobs>%s
    <BlobPrefix><Name>a folder/within/</Name></BlobPrefix></Blobs><NextMarker>%s</NextMarker>
    </EnumerationResults>
    """
        .formatted(
            elements(keys, "<Blob>\n<Name>", "</Name><Properties/></Blob>"),
            next == null ? "" : next.replace("&", "&amp;"));
  }

  /// The expected signatures come from Azure's own library (`azure-storage-blob` 12.35.0).
  @Test
  void signaturesAreThoseOfAzuresLibrary() {
    AzureKey key = AzureKey.of(ACCOUNT, KEY, "key");
    Map<String, String> headers =
        Map.of("x-ms-version", "2021-12-02", "x-ms-date", "Sat, 28 Nov 2026 03:00:00 GMT");
    assertThat(
            key.authorization(
                "GET",
                URI.create(
                    "https://account.blob.core.windows.net/container/a%20folder/model%2B1.safetensors"),
                "bytes=10-4095",
                headers))
        .isEqualTo("SharedKey account:qD41CEgNPiLaJofsj4K6U8k44nh2RapFw6kqG+gui98=");
    assertThat(
            key.authorization(
                "GET",
                URI.create(
                    "http://127.0.0.1:10000/account/container?restype=container&comp=list"
                        + "&delimiter=%2F&prefix=a%20folder%2F&marker=2%21x%2By"),
                "",
                headers))
        .isEqualTo("SharedKey account:jL3tMH15VOQCHA28PWQMU4OjxYw6OzHlQ8suSPLdF8g=");
  }

  private void requireReads(Map<String, String> settings) {
    Location file = put("one", new byte[3]);
    Store store = opened(settings);
    try (StoredFile opened = store.open(file, CachePolicy.BUFFERED)) {
      assertThat(opened.size()).isEqualTo(3);
    }
    assertThat(store.list(Location.of("az://" + BUCKET + "/a%20folder")).orElseThrow()).hasSize(1);
  }

  @Test
  void aTokenIsPartOfTheAddress() {
    requireReads(
        Map.of("AZURE_STORAGE_SERVICE_ENDPOINT", endpoint(), "AZURE_STORAGE_SAS_TOKEN", "?" + SAS));
  }

  @Test
  void aConnectionStringHasAll() {
    requireReads(
        Map.of(
            "AZURE_STORAGE_CONNECTION_STRING",
            "DefaultEndpointsProtocol=http;AccountName=account;AccountKey=%s;BlobEndpoint=%s/;"
                .formatted(KEY, endpoint())));
    requireReads(
        Map.of(
            "AZURE_STORAGE_CONNECTION_STRING",
            "BlobEndpoint=%s;SharedAccessSignature=%s".formatted(endpoint(), SAS)));
    AzureService service =
        AzureService.of(
            Map.of(
                    "AZURE_STORAGE_CONNECTION_STRING",
                    "AccountName=a;AccountKey=" + KEY + ";EndpointSuffix=core.chinacloudapi.cn")
                ::get);
    assertThat(service).hasToString("https://a.blob.core.chinacloudapi.cn");
  }

  @Test
  void aRefusalSaysWhatToDoAndNoSecret() {
    Location file = put("private", new byte[3]);
    Store nobody = opened(Map.of("AZURE_STORAGE_SERVICE_ENDPOINT", endpoint()));
    assertThatThrownBy(() -> nobody.open(file, CachePolicy.BUFFERED))
        .hasMessageContaining("status 403")
        .hasMessageContaining("this is not open to all: set AZURE_STORAGE_KEY");
    Store expired =
        opened(
            Map.of(
                "AZURE_STORAGE_SERVICE_ENDPOINT",
                endpoint(),
                "AZURE_STORAGE_SAS_TOKEN",
                "sig=gone"));
    assertThatThrownBy(() -> expired.open(file, CachePolicy.BUFFERED))
        .hasMessageContaining("the SAS token has expired, or does not allow this")
        .hasMessageNotContaining("gone");
  }

  @Test
  void settingsThatAreWrongAreNamed() {
    assertMisuse(Map.of(), "no storage account: set AZURE_STORAGE_ACCOUNT");
    assertMisuse(
        Map.of("AZURE_STORAGE_ACCOUNT", "a", "AZURE_STORAGE_KEY", "no base64"),
        "AZURE_STORAGE_KEY must have the account's key in Base64");
    assertMisuse(
        Map.of("AZURE_STORAGE_CONNECTION_STRING", "nothing"),
        "AZURE_STORAGE_CONNECTION_STRING must be of parts NAME=VALUE");
    assertMisuse(
        Map.of("AZURE_STORAGE_ACCOUNT", "a", "AZURE_STORAGE_SAS_TOKEN", "two words"),
        "AZURE_STORAGE_SAS_TOKEN must have the SAS token as a query");
    assertMisuse(
        Map.of("AZURE_STORAGE_ACCOUNT", "a b"),
        "AZURE_STORAGE_ACCOUNT must name the storage account by letters, digits and hyphens (was a"
            + " b)");
    assertMisuse(
        Map.of("AZURE_STORAGE_SERVICE_ENDPOINT", "https://there?sig=two words"),
        "AZURE_STORAGE_SERVICE_ENDPOINT must be an http or https address without a user name");
  }

  private void assertMisuse(Map<String, String> settings, String message) {
    Store store = opened(settings);
    assertThatThrownBy(() -> store.open(missing(), CachePolicy.BUFFERED))
        .isInstanceOf(MisuseException.class)
        .hasMessageContaining(message)
        .hasMessageNotContaining("two words");
  }
}
