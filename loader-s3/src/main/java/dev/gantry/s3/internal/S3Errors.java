// SPDX-License-Identifier: Apache-2.0
package dev.gantry.s3.internal;

import dev.gantry.core.Failure;
import dev.gantry.core.MisuseException;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.store.RemoteFault;
import java.net.URI;
import java.net.URISyntaxException;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Optional;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;
import software.amazon.awssdk.awscore.exception.AwsErrorDetails;
import software.amazon.awssdk.core.exception.SdkException;
import software.amazon.awssdk.crt.CRT;
import software.amazon.awssdk.crt.http.HttpHeader;
import software.amazon.awssdk.crt.s3.S3FinishedResponseContext;
import software.amazon.awssdk.profiles.ProfileFileSystemSetting;
import software.amazon.awssdk.services.s3.model.S3Exception;

/// Describes a failed request in one line without secrets. A server's message may contain the key
/// of the credentials, so only messages of known kinds are shown.
final class S3Errors {
  private static final Pattern CODE = Pattern.compile("<Code>([A-Za-z0-9.]{1,80})</Code>");

  /// S3's error codes after which another attempt may succeed, whatever the HTTP status.
  private static final Set<String> PASSING_CODES =
      Set.of(
          "SlowDown", "InternalError", "RequestTimeout", "ServiceUnavailable", "OperationAborted");

  /// The CRT's names of errors for connections that were lost or too slow.
  private static final Pattern LOST =
      Pattern.compile(
          "AWS_IO_(SOCKET|DNS|TLS_NEGOTIATION).*|AWS_ERROR_HTTP_(CONNECTION|SERVER|CHANNEL).*"
              + "|AWS_ERROR_HTTP_RESPONSE_FIRST_BYTE_TIMEOUT|AWS_ERROR_S3_REQUEST_TIME.*");

  /// The HTTP statuses by which AWS reports that a bucket is in another region.
  private static final Set<Integer> WRONG_REGION = Set.of(301, 307, 400);

  private static final Pattern REGION = Pattern.compile("[a-z0-9-]{1,40}");

  /// The beginning of the SDK's message if no answer arrived.
  private static final String NOT_SENT = "Failed to send the request: ";

  /// The beginning of what follows there if the answer had a status of failure, such as 500, and no error of S3's.
  private static final String ANSWERED = "Response code indicates ";

  /// The beginning of the SDK's message if the name of a region cannot be part of a host's name.
  private static final String INVALID_REGION = "Invalid region: ";

  private S3Errors() {}

  /// Returns the failure for an exception of the SDK. If the server was not reached, the failure
  /// names the server's address.
  static TransferException of(String operation, String subject, URI url, SdkException reason) {
    String message = String.valueOf(reason.getMessage());
    if (reason instanceof S3Exception || !message.startsWith(NOT_SENT)) {
      return of(operation, subject, reason);
    }
    String why = message.substring(NOT_SENT.length()).replaceFirst(" \\(SDK Attempt Count.*", "");
    return new TransferException(
        operation,
        subject,
        new Failure.Remote(
            0,
            url.getScheme()
                + "://"
                + url.getAuthority()
                + (why.startsWith(ANSWERED) ? " failed: " : " was not reached: ")
                + why));
  }

  /// Returns the failure for an exception of the SDK.
  static TransferException of(String operation, String subject, Throwable reason) {
    return switch (reason) {
      case S3Exception e -> {
        @Nullable AwsErrorDetails details = e.awsErrorDetails();
        @Nullable String code = details == null ? null : details.errorCode();
        yield region(e)
            .map(region ->
                new TransferException(
                    operation,
                    subject,
                    new Failure.Remote(
                        e.statusCode(),
                        "the bucket is in region " + region + ": set AWS_REGION=" + region)))
            .orElseGet(() -> of(operation, subject, e.statusCode(), code == null ? "" : code, ""));
      }
      case TransferException known -> known;
      case SdkException e ->
          new TransferException(operation, subject, new Failure.Remote(0, line(e)));
      default ->
          new TransferException(
              operation,
              subject,
              new Failure.Remote(0, String.valueOf(reason.getMessage())),
              reason);
    };
  }

  /// Returns what to throw where the SDK's client cannot be made: the SDK refuses a wrong address
  /// of a server by exceptions of several types, without the setting that has it.
  static RuntimeException ofEndpoint(RuntimeException reason) {
    boolean isAddress =
        reason instanceof IllegalArgumentException
            || reason instanceof NullPointerException
            || reason.getCause() instanceof URISyntaxException;
    if (!isAddress) {
      return reason;
    }
    MisuseException wrong =
        new MisuseException(
            "AWS_ENDPOINT_URL, AWS_ENDPOINT_URL_S3 or the profile's endpoint_url must be an http or"
                + " https address with a host's name, such as http://localhost:9000: "
                + reason.getMessage());
    wrong.initCause(reason);
    return wrong;
  }

  /// Returns the region of a bucket if the answer refuses the request because it was sent to
  /// another region.
  private static Optional<String> region(S3Exception refused) {
    @Nullable AwsErrorDetails details = refused.awsErrorDetails();
    return details == null || !WRONG_REGION.contains(refused.statusCode())
        ? Optional.empty()
        : Optional.ofNullable(details.sdkHttpResponse())
            .flatMap(answer -> answer.firstMatchingHeader("x-amz-bucket-region"))
            .filter(region -> REGION.matcher(region).matches());
  }

  /// Returns the reason why an attempt of the CRT client failed.
  static RemoteFault fault(S3FinishedResponseContext end) {
    byte[] body = end.getErrorPayload();
    Matcher found = CODE.matcher(body == null ? "" : new String(body, StandardCharsets.UTF_8));
    String code = found.find() ? found.group(1) : "";
    String name = CRT.awsErrorName(end.getErrorCode());
    int status = status(end, name);
    boolean passes =
        RemoteFault.isPassing(status)
            || PASSING_CODES.contains(code)
            || CRT.awsIsTransientError(end.getErrorCode())
            || LOST.matcher(name).matches();
    String reason =
        reason(status, code, CRT.awsErrorString(end.getErrorCode()) + " (" + name + ")");
    return RemoteFault.of(passes, status >= 300 ? status : 0, reason, retryAfter(end, name));
  }

  /// Returns the value of `Retry-After`. If the CRT has repeated a throttled request itself, it
  /// withholds the headers; in that case this is one second, the least that AWS's SDKs wait.
  private static String retryAfter(S3FinishedResponseContext end, String name) {
    HttpHeader[] headers = end.getErrorHeaders();
    return headers == null || headers.length == 0
        ? name.equals("AWS_ERROR_S3_SLOW_DOWN") ? "1" : ""
        : Arrays.stream(headers)
            .filter(header -> header.getName().equalsIgnoreCase("Retry-After"))
            .map(HttpHeader::getValue)
            .findFirst()
            .orElse("");
  }

  /// Returns the HTTP status of a failed request. After its last retry, the CRT reports the name
  /// of its own error and not the status of the answer.
  private static int status(S3FinishedResponseContext end, String name) {
    return switch (name) {
      case "AWS_ERROR_S3_SLOW_DOWN" -> 503;
      case "AWS_ERROR_S3_INTERNAL_ERROR" -> 500;
      default -> end.getResponseStatus();
    };
  }

  private static TransferException of(
      String operation, String subject, int status, String code, String otherwise) {
    return new TransferException(
        operation,
        subject,
        new Failure.Remote(status >= 300 ? status : 0, reason(status, code, otherwise)));
  }

  /// @param code S3's error code, such as `NoSuchKey`; may be empty
  /// @param otherwise the reason if neither the code nor the status tells it
  private static String reason(int status, String code, String otherwise) {
    return switch (code) {
      case "ExpiredToken", "TokenRefreshRequired" ->
          "the credentials have expired; renew them (" + code + ")";
      case "InvalidAccessKeyId", "SignatureDoesNotMatch", "InvalidToken" ->
          "the server does not accept the credentials (" + code + ")";
      case "" ->
          switch (status) {
            case 301 -> "the bucket is in another region: set AWS_REGION";
            case 400 -> "Bad Request; are the credentials still valid?";
            case 403 ->
                "Forbidden: the credentials do not allow this, or the object does not exist";
            case 404 -> "Not Found";
            case 412 -> "the file changed after it was opened";
            case 429 -> "Too Many Requests";
            default -> otherwise.isEmpty() ? "the server refused" : otherwise;
          };
      case "PermanentRedirect",
          "AuthorizationHeaderMalformed",
          "IllegalLocationConstraintException" ->
          "the bucket is in another region: set AWS_REGION (" + code + ")";
      case "NoSuchKey" ->
          "no such object or bucket (NoSuchKey); the name of a folder ends with '/'";
      case "PreconditionFailed" -> "the file changed after it was opened";
      default -> code;
    };
  }

  /// Returns the SDK's message on one line. It lists all that the SDK's chain tried, in several
  /// sentences.
  private static String line(SdkException e) {
    String message = String.valueOf(e.getMessage());
    if (message.startsWith("Unable to load credentials")) {
      String profile =
          ProfileFileSystemSetting.AWS_PROFILE
              .getStringValue()
              .map(name -> "; the profile " + name + " has none, or does not exist")
              .orElse("");
      return "no credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE, or"
          + " run where AWS gives them"
          + profile;
    }
    if (message.startsWith("Unable to load region")) {
      return "no region: set AWS_REGION";
    }
    if (message.startsWith(INVALID_REGION)) {
      return "AWS_REGION or the profile's region must name a region, such as us-east-1: "
          + message.substring(INVALID_REGION.length());
    }
    return message;
  }
}
